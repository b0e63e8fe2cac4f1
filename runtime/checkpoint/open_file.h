#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <system_error>

#include "protocol/result.h"
#include "runtime/checkpoint/tries.h"

namespace footplate {

/// Of a checkpoint that a run needs: two seconds of pauses.
constexpr Retries kReading{.tries = 4, .pause = std::chrono::milliseconds(100)};

/// A file that may come from anywhere, open for reading through one descriptor. Not mapped into memory:
/// a file that shrinks meanwhile is then an error and not a signal. Move-only; one thread.
class OpenFile {
 public:
  /// Errors (failed): not there, no permission, a symbolic link, not a regular file, owned by neither
  /// this user nor root. Root opens anyone's.
  /// What may pass is tried again as `retries` says, here and in read().
  static Result<OpenFile> open(const std::filesystem::path& path, Retries retries = {});
  OpenFile(OpenFile&& other) noexcept;
  OpenFile& operator=(OpenFile&&) = delete;
  ~OpenFile();

  std::uint64_t size() const { return size_; }  ///< when it was opened

  /// Fills `into` from `offset`. Error: the device's, or the file has become shorter, or another one.
  Result<void> read(std::span<std::byte> into, std::uint64_t offset) const;

  /// What the system's cache holds of it, and is on the device, may go.
  void leave_cache() const;

 private:
  OpenFile(int descriptor, std::filesystem::path path, Retries retries);
  static Result<OpenFile> open_once(const std::filesystem::path& path, Retries retries,
                                    std::error_code& error);
  Result<void> reopen() const;

  mutable int descriptor_;  ///< another one where a server has forgotten the file (ESTALE)
  std::uint64_t size_ = 0;
  std::filesystem::path path_;
  Retries retries_;
};

/// A whole small file. Error also where it is longer than `limit_bytes`.
Result<std::string> read_text(const std::filesystem::path& path, std::uint64_t limit_bytes,
                              Retries retries = {});

}  // namespace footplate
