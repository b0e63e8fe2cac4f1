#pragma once

#include <filesystem>
#include <string>

namespace footplate {

/// Reads what is appended to a file that may not exist yet. One thread.
class FileTail {
 public:
  /// Starts at `offset` bytes.
  explicit FileTail(std::filesystem::path path, std::uintmax_t offset = 0);
  ~FileTail();
  FileTail(const FileTail&) = delete;
  FileTail& operator=(const FileTail&) = delete;

  /// Readable when something may have been appended; -1 where the system can't tell (then look now and then).
  int fd() const { return notify_; }

  /// The whole lines that were appended since the last call, at most 1 MiB of them; empty for none. Never
  /// blocks.
  std::string lines();

  /// What is left without a newline at its end.
  std::string rest();

 private:
  void read_more();

  std::filesystem::path path_;
  std::uintmax_t offset_;
  std::string buffer_;
  int file_ = -1;
  int notify_ = -1;
};

/// Where the last `count` lines of a file begin, in bytes; 0 where it has no more, or can't be read.
std::uintmax_t offset_of_last_lines(const std::filesystem::path& path, std::size_t count);

/// The last `count` lines of a file, for few of them: at most its last 256 KiB.
std::string last_lines(const std::filesystem::path& path, std::size_t count);

}  // namespace footplate
