#pragma once

#include <cstdint>
#include <filesystem>
#include <span>

#include "protocol/result.h"

namespace footplate {

/// A file's bytes, read through the page cache, which all ranks of a host share. Movable. The bytes
/// may be read from any thread.
class MappedFile {
 public:
  /// Errors: can't be opened, is empty.
  static Result<MappedFile> open(const std::filesystem::path& path);

  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  ~MappedFile();

  std::span<const std::uint8_t> bytes() const { return bytes_; }

 private:
  explicit MappedFile(std::span<const std::uint8_t> bytes) : bytes_(bytes) {}
  std::span<const std::uint8_t> bytes_;
};

}  // namespace footplate
