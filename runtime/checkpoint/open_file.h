#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <system_error>

#include "protocol/result.h"

namespace footplate {

/// A file that may come from anywhere, open for reading through one descriptor. Not mapped into memory:
/// a file that shrinks meanwhile is then an error and not a signal. Move-only; one thread.
class OpenFile {
 public:
  /// Errors (failed): not there, no permission, a symbolic link, not a regular file, owned by neither
  /// this user nor root. Root opens anyone's.
  static Result<OpenFile> open(const std::filesystem::path& path);
  OpenFile(OpenFile&& other) noexcept;
  OpenFile& operator=(OpenFile&&) = delete;
  ~OpenFile();

  std::uint64_t size() const { return size_; }  ///< when it was opened

  /// Fills `into` from `offset`. What may pass is tried again for two seconds. Error: the device's, or the
  /// file has become shorter, or another one.
  Result<void> read(std::span<std::byte> into, std::uint64_t offset) const;

  /// What the system's cache holds of it, and is on the device, may go.
  void leave_cache() const;

 private:
  OpenFile(int descriptor, std::uint64_t size, std::filesystem::path path);
  static Result<OpenFile> open_once(const std::filesystem::path& path, std::error_code& error);
  Result<void> reopen() const;

  mutable int descriptor_;  ///< another one where a server has forgotten the file (ESTALE)
  std::uint64_t size_;
  std::filesystem::path path_;
};

/// A whole small file. Error also where it is longer than `limit_bytes`.
Result<std::string> read_text(const std::filesystem::path& path, std::uint64_t limit_bytes);

}  // namespace footplate
