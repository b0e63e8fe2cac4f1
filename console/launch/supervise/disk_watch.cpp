#include "console/launch/supervise/disk_watch.h"

#include <fcntl.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdint>

namespace footplate {
namespace {

constexpr std::chrono::seconds kBetweenLooks{2};

/// With so much it isn't tried. What is kept for root, or for the file system itself, differs between them.
constexpr std::uint64_t kLittle = std::uint64_t{64} << 20, kFewFiles = 64;

constexpr const char* kTrial = ".footplate-room";

/// Only what says that there is no room counts.
bool can_write(const std::filesystem::path& path) {
  const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (fd < 0) return errno != ENOSPC && errno != EDQUOT;
  const std::array<char, 4096> block{};
  int error = ::write(fd, block.data(), block.size()) < 0 || ::fsync(fd) != 0 ? errno : 0;
  if (::close(fd) != 0) error = errno;
  ::unlink(path.c_str());
  return error != ENOSPC && error != EDQUOT;
}

}  // namespace

bool is_disk_full(const std::filesystem::path& folder) {
  struct statvfs disk {};
  if (::statvfs(folder.c_str(), &disk) != 0) return false;
  const bool has_room = disk.f_bavail * disk.f_frsize > kLittle;
  const bool has_files = disk.f_files == 0 || disk.f_favail > kFewFiles;  // none: it doesn't count them
  return !(has_room && has_files) && !can_write(folder / kTrial);
}

std::string DiskWatch::look(Clock::time_point now) {
  if (now < next_) return "";
  next_ = now + kBetweenLooks;
  full_in_row_ = is_full_(folder_) ? full_in_row_ + 1 : 0;
  if (full_in_row_ != 2) return "";
  return "no space is left on the disk of " + folder_.string() +
         ", or no further file: what the run prints may be missing here and in log/batch.log; free some "
         "space";
}

}  // namespace footplate
