#include "runtime/checkpoint/safetensors.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include "runtime/checkpoint/open_file.h"
#include "runtime/checkpoint/refused.h"
#include "runtime/checkpoint/sha256.h"

namespace footplate {
namespace {

// The format is little-endian and tensors are copied as they are.
static_assert(std::endian::native == std::endian::little);

constexpr std::size_t kLengthBytes = 8;  ///< the header's length, before the header
constexpr std::size_t kReadBlock = std::size_t{1} << 20;

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

}  // namespace

Result<SafetensorsFile> SafetensorsFile::open(const std::filesystem::path& path,
                                              std::uint64_t expected_bytes) {
  auto opened = OpenFile::open(path, kReading);
  if (!opened) return tl::unexpected(opened.error());
  if (expected_bytes != 0 && opened->size() != expected_bytes)
    return refused(
        path, "it has " + std::to_string(opened->size()) + " bytes, not " + std::to_string(expected_bytes));
  const auto length = header_length(*opened, path);
  if (!length) return tl::unexpected(length.error());

  SafetensorsFile file(*std::move(opened), path);
  file.start_.resize(kLengthBytes + static_cast<std::size_t>(*length));
  if (auto read = file.file_.read(std::as_writable_bytes(std::span(file.start_)), 0); !read)
    return tl::unexpected(read.error());
  auto header = parse_safetensors_header(std::string_view(file.start_).substr(kLengthBytes),
                                         file.file_.size() - file.start_.size());
  if (!header) return refused(path, header.error().message);
  file.header_ = *std::move(header);
  return file;
}

Result<std::string> SafetensorsFile::read(const Take& take) const {
  Sha256 hash;
  std::vector<std::byte> room(std::min<std::uint64_t>(kReadBlock, file_.size()));
  std::uint64_t at = 0;
  const auto next = [&](std::size_t bytes) -> Result<std::span<const std::byte>> {
    const auto block = std::span(room).first(bytes);
    if (auto read = file_.read(block, at); !read) return tl::unexpected(read.error());
    hash.add(block);
    at += bytes;
    return block;
  };
  // What was checked is what is hashed, even if somebody writes to the file meanwhile.
  for (std::string_view left = start_; !left.empty();) {
    const std::string_view expected = left.substr(0, kReadBlock);
    const auto block = next(expected.size());
    if (!block) return tl::unexpected(block.error());
    if (std::memcmp(block->data(), expected.data(), expected.size()) != 0)
      return refused(path_, "it changed while it was read");
    left.remove_prefix(expected.size());
  }
  for (const TensorEntry& entry : header_.tensors)
    for (std::uint64_t begin = entry.begin; begin < entry.end;) {
      const auto block =
          next(static_cast<std::size_t>(std::min<std::uint64_t>(kReadBlock, entry.end - begin)));
      if (!block) return tl::unexpected(block.error());
      if (take) take(entry, begin - entry.begin, *block);
      begin += block->size();
    }
  return hash.hex();
}

}  // namespace footplate
