#include "run_files/lease.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <ctime>
#include <string>

namespace footplate {
namespace {

constexpr const char* kLeaseFile = "alive";
/// A lease that looks so young by this host's clock is, unless its clock is behind: then it looks older
/// later.
constexpr std::chrono::seconds kYoung{30};

/// Opened: a network file system then asks its server, where stat() may be told what it was a minute ago.
std::optional<std::time_t> time_of(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return std::nullopt;
  struct stat info {};
  const bool known = ::fstat(fd, &info) == 0;
  ::close(fd);
  return known ? std::optional(info.st_mtime) : std::nullopt;
}

/// The time that the disk gives to what is written now; where nothing can be written, this host's.
std::time_t time_of_disk(const std::filesystem::path& directory) {
  std::string name = (directory / ".now-XXXXXX").string();
  const int fd = ::mkostemp(name.data(), O_CLOEXEC);
  if (fd < 0) return std::time(nullptr);
  struct stat info {};
  const bool known = ::write(fd, "\n", 1) == 1 && ::fsync(fd) == 0 && ::fstat(fd, &info) == 0;
  ::close(fd);
  ::unlink(name.c_str());
  return known ? info.st_mtime : std::time(nullptr);
}

}  // namespace

void renew_lease(const std::filesystem::path& run_directory) {
  const int fd = ::open((run_directory / kLeaseFile).c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  if (fd < 0) return;
  ::futimens(fd, nullptr);  // the time of the server, where there is one
  ::close(fd);
}

void end_lease(const std::filesystem::path& run_directory) {
  ::unlink((run_directory / kLeaseFile).c_str());
}

void expire_lease(const std::filesystem::path& run_directory) {
  const int fd = ::open((run_directory / kLeaseFile).c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  if (fd < 0) return;
  const struct timespec long_ago[2] = {{}, {}};  // 1970
  ::futimens(fd, long_ago);
  ::close(fd);
}

std::optional<std::chrono::seconds> age_of_lease(const std::filesystem::path& run_directory) {
  const auto renewed = time_of((run_directory / kLeaseFile).string());
  if (!renewed) return std::nullopt;
  const std::chrono::seconds here(std::time(nullptr) - *renewed);
  if (here.count() >= 0 && here < kYoung) return here;
  return exact_age_of_lease(run_directory);
}

std::optional<std::chrono::seconds> exact_age_of_lease(const std::filesystem::path& run_directory) {
  const auto renewed = time_of((run_directory / kLeaseFile).string());
  if (!renewed) return std::nullopt;
  return std::chrono::seconds(time_of_disk(run_directory) - *renewed);
}

}  // namespace footplate
