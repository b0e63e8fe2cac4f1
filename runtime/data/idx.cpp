#include "runtime/data/idx.h"

#include <fmt/format.h>

#include <cstddef>
#include <span>
#include <string>

#include "runtime/data/gzip_file.h"

namespace footplate {
namespace {

constexpr std::size_t kMagicBytes = 4, kSizeBytes = 4;
constexpr std::uint8_t kUnsignedByte = 8;
/// So that a product of sizes can't overflow; no file that can be read has as many values.
constexpr std::int64_t kMostValues = std::int64_t{1} << 32;

std::int64_t big_endian(std::span<const std::uint8_t> bytes) {
  std::int64_t value = 0;
  for (const std::uint8_t byte : bytes) value = value * 256 + byte;
  return value;
}

/// What is wrong with the first bytes; empty: nothing.
std::string wrong_magic(std::span<const std::uint8_t> file, std::size_t dimensions) {
  if (file.size() < kMagicBytes || file[0] != 0 || file[1] != 0)
    return "isn't an IDX file: it doesn't begin with two zero bytes and a type";
  if (file[2] != kUnsignedByte)
    return fmt::format("has values of type {:#x} at byte 2; what can be read is bytes (0x8)", file[2]);
  if (file[3] != dimensions)
    return fmt::format("has {} dimensions at byte 3; {} are wanted here, {}", file[3], dimensions,
                       dimensions == 1 ? "as labels have" : "as images have");
  if (file.size() < kMagicBytes + kSizeBytes * dimensions)
    return fmt::format("is cut short: its header has {} bytes, {} are there",
                       kMagicBytes + kSizeBytes * dimensions, file.size());
  return "";
}

}  // namespace

Result<Idx> read_idx(const std::filesystem::path& path, std::size_t dimensions) {
  const auto file = read_file_or_gzip(path);
  if (!file) return tl::unexpected(file.error());
  const auto bad = [&](const std::string& what) {
    return fail(ErrorKind::usage, fmt::format("{} {}", path.string(), what));
  };
  const std::span<const std::uint8_t> bytes(*file);
  if (const std::string wrong = wrong_magic(bytes, dimensions); !wrong.empty()) return bad(wrong);
  Idx idx;
  std::int64_t values = 1;
  for (std::size_t i = 0; i < dimensions; ++i) {
    const std::size_t at = kMagicBytes + kSizeBytes * i;
    idx.shape.push_back(big_endian(bytes.subspan(at, kSizeBytes)));
    if (idx.shape.back() == 0 || idx.shape.back() > kMostValues / values)
      return bad(fmt::format("has a damaged header: the size at byte {} is {}", at, idx.shape.back()));
    values *= idx.shape.back();
  }
  const auto content = bytes.subspan(kMagicBytes + kSizeBytes * dimensions);
  if (content.size() != static_cast<std::size_t>(values))
    return bad(fmt::format("{}: its header promises {} values, {} are there",
                           content.size() < static_cast<std::size_t>(values) ? "is cut short" : "is damaged",
                           values, content.size()));
  idx.values.assign(content.begin(), content.end());
  return idx;
}

}  // namespace footplate
