#include "console/launch/supervise/disk_watch.h"

#include <sys/statvfs.h>
#include <unistd.h>

namespace footplate {
namespace {

constexpr std::chrono::seconds kBetweenLooks{2};

}  // namespace

bool is_disk_full(const std::filesystem::path& folder) {
  struct statvfs disk {};
  if (::statvfs(folder.c_str(), &disk) != 0) return false;
  const bool is_root = ::geteuid() == 0;  // to whom what is reserved belongs
  const bool counts_files = disk.f_files != 0;
  return (is_root ? disk.f_bfree : disk.f_bavail) == 0 ||
         (counts_files && (is_root ? disk.f_ffree : disk.f_favail) == 0);
}

std::string DiskWatch::look(Clock::time_point now) {
  if (now < next_) return "";
  next_ = now + kBetweenLooks;
  full_in_row_ = is_full_(folder_) ? full_in_row_ + 1 : 0;
  if (full_in_row_ != 2) return "";
  return "no space is left on the disk of " + folder_.string() +
         ": what the run prints may be missing here and in log/batch.log; free some space";
}

}  // namespace footplate
