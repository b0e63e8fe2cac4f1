#include "runtime/checkpoint/write_file.h"

#include "runtime/checkpoint/sha256.h"

namespace footplate {

std::error_code write_file(Disk& disk, const std::filesystem::path& path,
                           std::span<const std::span<const std::byte>> pieces, std::string* sha256) {
  int descriptor = -1;
  if (auto error = disk.create(path, descriptor)) return error;
  Sha256 hash;
  std::error_code error;
  for (const auto piece : pieces) {
    if (error || piece.empty()) continue;
    hash.add(piece);
    error = disk.write(descriptor, piece);
  }
  if (!error) error = disk.sync(descriptor);
  // Closed in any case; some file systems report a failed write only here.
  const std::error_code closed = disk.close(descriptor);
  if (sha256 != nullptr) *sha256 = hash.hex();
  return error ? error : closed;
}

}  // namespace footplate
