#include "runtime/checkpoint/write_file.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

#include "runtime/checkpoint/open_file.h"
#include "runtime/checkpoint/refused.h"
#include "runtime/checkpoint/sha256.h"

namespace footplate {
namespace {

constexpr std::size_t kBlock = std::size_t{1} << 20;
/// Smaller files stay in the system's cache.
constexpr std::uint64_t kLarge = std::uint64_t{64} << 20;

/// The blocks of a piece, until `take` returns false.
template <class Take>
void for_each_block(std::span<const std::byte> piece, const Take& take) {
  while (!piece.empty()) {
    const auto block = piece.first(std::min(piece.size(), kBlock));
    if (!take(block)) return;
    piece = piece.subspan(block.size());
  }
}

}  // namespace

std::error_code write_file(Disk& disk, const std::filesystem::path& path,
                           std::span<const std::span<const std::byte>> pieces, std::string* sha256,
                           const Wrote& wrote) {
  int descriptor = -1;
  if (auto error = disk.create(path, descriptor)) return error;
  Sha256 hash;
  std::error_code error;
  for (const auto piece : pieces)
    for_each_block(piece, [&](std::span<const std::byte> block) {
      if (error) return false;
      hash.add(block);
      error = disk.write(descriptor, block);
      if (!error && wrote && !wrote(block.size()))
        error = std::make_error_code(std::errc::operation_canceled);
      return true;
    });
  if (!error) error = disk.sync(descriptor);
  // Closed in any case; some file systems report a failed write only here.
  const std::error_code closed = disk.close(descriptor);
  if (sha256 != nullptr) *sha256 = hash.hex();
  return error ? error : closed;
}

Result<void> read_back(const std::filesystem::path& path,
                       std::span<const std::span<const std::byte>> pieces) {
  const auto file = OpenFile::open(path, kReading);
  if (!file) return tl::unexpected(file.error());
  std::uint64_t bytes = 0;
  for (const auto piece : pieces) bytes += piece.size();
  if (file->size() != bytes)
    return refused(path, "it has " + std::to_string(file->size()) + " bytes, not " + std::to_string(bytes));
  std::vector<std::byte> read(static_cast<std::size_t>(std::min<std::uint64_t>(bytes, kBlock)));
  std::uint64_t at = 0;
  Result<void> same;
  for (const auto piece : pieces)
    for_each_block(piece, [&](std::span<const std::byte> block) {
      const auto there = std::span(read).first(block.size());
      if (same) same = file->read(there, at);
      if (same && std::memcmp(there.data(), block.data(), block.size()) != 0)
        same = refused(path, "its content is damaged (it differs from what was written)");
      at += block.size();
      return same.has_value();
    });
  if (bytes >= kLarge) file->leave_cache();
  return same;
}

}  // namespace footplate
