#include "protocol/reserved_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <string>

namespace footplate {
namespace {

std::string reserved(const std::filesystem::path& path) {
  return path.string() + ".reserved";
}

bool write_at_start(int fd, std::string_view text) {
  for (std::size_t done = 0; done < text.size();) {
    const ssize_t written = ::pwrite(fd, text.data() + done, text.size() - done, static_cast<off_t>(done));
    if (written <= 0) return false;
    done += static_cast<std::size_t>(written);
  }
  return true;
}

/// Bytes that can be written into a file without asking the disk for more. What a file that changed places
/// was given may be more than its size.
std::size_t room_of(const struct stat& info) {
  constexpr std::size_t kBlock = 512;  // the unit of st_blocks, whatever the file system's is
  return std::max(static_cast<std::size_t>(info.st_size), kBlock * static_cast<std::size_t>(info.st_blocks));
}

bool take_its_place(const std::string& from, const char* to) {
  if (::access(to, F_OK) != 0) return ::rename(from.c_str(), to) == 0;
  return ::renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to, RENAME_EXCHANGE) == 0;
}

}  // namespace

bool reserve_room(const std::filesystem::path& path, std::size_t bytes) {
  struct stat info {};
  if (::lstat(reserved(path).c_str(), &info) == 0 && static_cast<std::size_t>(info.st_size) >= bytes)
    return true;
  const int fd = ::open(reserved(path).c_str(), O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
  if (fd < 0) return false;
  const bool written = write_at_start(fd, std::string(bytes, ' '));  // a hole would be no room
  ::close(fd);
  return written;
}

bool write_into_reserved_room(const std::filesystem::path& path, std::string_view text) {
  const int fd = ::open(reserved(path).c_str(), O_RDWR | O_NOFOLLOW | O_CLOEXEC);
  if (fd < 0) return false;
  struct stat info {};
  const bool fits = ::fstat(fd, &info) == 0 && text.size() <= room_of(info);
  // The file keeps its size, and so its room, for the next time: JSON may end in spaces.
  std::string padded(text);
  padded.resize(std::max(text.size(), static_cast<std::size_t>(info.st_size)), ' ');
  const bool written = fits && write_at_start(fd, padded) && ::fsync(fd) == 0;
  ::close(fd);
  return written && take_its_place(reserved(path), path.c_str());
}

void give_room_back(const std::filesystem::path& path) {
  ::unlink(reserved(path).c_str());
}

}  // namespace footplate
