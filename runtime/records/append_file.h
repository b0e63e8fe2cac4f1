#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <system_error>

#include "protocol/result.h"

namespace footplate {

/// A file of lines that only grows. What a crash or a full disk left of a line never stays in it. One
/// thread; move-only.
class AppendFile {
 public:
  /// Makes the file (mode 0600) where there is none, and cuts off a last line that has no end. Error
  /// (failed): the operating system's.
  static Result<AppendFile> open(const std::filesystem::path& path);
  AppendFile(AppendFile&& other) noexcept;
  AppendFile& operator=(AppendFile&&) = delete;
  ~AppendFile();

  /// All of `lines`, which end with a newline, or nothing of them.
  std::error_code append(std::string_view lines);

  /// The last line, without its newline; empty where there is none, or it is longer than 1 MiB.
  std::string last_line() const;

  const std::filesystem::path& path() const { return path_; }

 private:
  AppendFile(std::filesystem::path path, int descriptor);
  std::filesystem::path path_;
  int descriptor_;
};

}  // namespace footplate
