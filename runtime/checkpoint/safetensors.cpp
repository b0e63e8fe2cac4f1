#include "runtime/checkpoint/safetensors.h"

#include <array>
#include <bit>
#include <new>

#include "runtime/checkpoint/open_file.h"
#include "runtime/checkpoint/refused.h"

namespace footplate {
namespace {

// The format is little-endian and tensors are copied as they are.
static_assert(std::endian::native == std::endian::little);

constexpr std::size_t kLengthBytes = 8;  ///< the header's length, before the header

/// The header's length, checked against the file's.
Result<std::uint64_t> header_length(const OpenFile& file, const std::filesystem::path& path) {
  if (file.size() < kLengthBytes)
    return refused(path, std::to_string(file.size()) + " bytes are too short for a safetensors file");
  std::array<std::byte, kLengthBytes> raw{};
  if (auto read = file.read(raw, 0); !read) return tl::unexpected(read.error());
  const auto length = std::bit_cast<std::uint64_t>(raw);
  if (length > kMaxHeaderBytes)
    return refused(
        path, "a header of " + std::to_string(length) + " bytes; at most " + std::to_string(kMaxHeaderBytes));
  if (length > file.size() - kLengthBytes)
    return refused(
        path, "a header of " + std::to_string(length) + " bytes in a file of " + std::to_string(file.size()));
  return length;
}

/// The header's JSON, `length` bytes of it.
Result<std::string> header_text(const OpenFile& file, std::uint64_t length) {
  std::string text(length, '\0');
  if (auto read = file.read(std::as_writable_bytes(std::span(text)), kLengthBytes); !read)
    return tl::unexpected(read.error());
  return text;
}

}  // namespace

Result<SafetensorsHeader> read_safetensors_header(const std::filesystem::path& path) {
  const auto opened = OpenFile::open(path);
  if (!opened) return tl::unexpected(opened.error());
  const auto length = header_length(*opened, path);
  if (!length) return tl::unexpected(length.error());
  const auto text = header_text(*opened, *length);
  if (!text) return tl::unexpected(text.error());
  auto header = parse_safetensors_header(*text, opened->size() - kLengthBytes - *length);
  if (!header) return refused(path, header.error().message);
  return header;
}

Result<SafetensorsFile> SafetensorsFile::read(const std::filesystem::path& path,
                                              std::uint64_t expected_bytes) {
  const auto opened = OpenFile::open(path);
  if (!opened) return tl::unexpected(opened.error());
  if (expected_bytes != 0 && opened->size() != expected_bytes)
    return refused(
        path, "it has " + std::to_string(opened->size()) + " bytes, not " + std::to_string(expected_bytes));
  const auto length = header_length(*opened, path);
  if (!length) return tl::unexpected(length.error());

  const auto text = header_text(*opened, *length);
  if (!text) return tl::unexpected(text.error());
  SafetensorsFile file;
  file.size_ = opened->size();
  file.data_begin_ = kLengthBytes + *length;
  auto header = parse_safetensors_header(*text, file.size_ - file.data_begin_);
  if (!header) return refused(path, header.error().message);
  file.header_ = *std::move(header);

  file.content_.reset(new (std::nothrow) std::byte[file.size_]);
  if (!file.content_) return refused(path, "no memory for its " + std::to_string(file.size_) + " bytes");
  if (auto read = opened->read({file.content_.get(), file.size_}, 0); !read)
    return tl::unexpected(read.error());
  // What was checked is what is handed out, even if somebody writes to the file meanwhile.
  const std::string_view again(reinterpret_cast<const char*>(file.content_.get()) + kLengthBytes, *length);
  if (again != *text) return refused(path, "it changed while it was read");
  return file;
}

std::span<const std::byte> SafetensorsFile::data(const TensorEntry& entry) const {
  return bytes().subspan(data_begin_ + entry.begin, entry.end - entry.begin);
}

}  // namespace footplate
