#include "runtime/checkpoint/disk.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>

#include "runtime/checkpoint/tries.h"

namespace footplate {
namespace {

/// Linux writes at most this much at once; more would come back as a short write anyway.
constexpr std::size_t kLargestWrite = std::size_t{1} << 30;
/// A write of at least this much starts the way to the device at once.
constexpr std::size_t kWrittenBehind = std::size_t{1} << 20;

std::error_code check(int status) {
  return status == 0 ? std::error_code() : error_of_system();
}

}  // namespace

std::error_code PosixDisk::make_folder(const std::filesystem::path& path) {
  return check(::mkdir(path.c_str(), 0700));
}

std::error_code PosixDisk::create(const std::filesystem::path& path, int& descriptor) {
  descriptor = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
  return check(descriptor < 0 ? -1 : 0);
}

std::error_code PosixDisk::write(int descriptor, std::span<const std::byte> bytes) {
  const bool large = bytes.size() >= kWrittenBehind;
  while (!bytes.empty()) {
    const ssize_t written = ::write(descriptor, bytes.data(), std::min(bytes.size(), kLargestWrite));
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return error_of_system();
    if (written == 0) return std::make_error_code(std::errc::no_space_on_device);
    bytes = bytes.subspan(static_cast<std::size_t>(written));
  }
  // On its way to the device already: at the end there is little left to wait for, and no stretch of dirty
  // pages for which the system slows down whoever writes.
  if (large) static_cast<void>(::sync_file_range(descriptor, 0, 0, SYNC_FILE_RANGE_WRITE));
  return {};
}

std::error_code PosixDisk::sync(int descriptor) {
  return check(::fsync(descriptor));
}

std::error_code PosixDisk::close(int descriptor) {
  return check(::close(descriptor));
}

std::error_code PosixDisk::sync_folder(const std::filesystem::path& path) {
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) return error_of_system();
  const std::error_code error = check(::fsync(descriptor));
  ::close(descriptor);
  // Some network file systems can't sync a folder and say so; there is nothing better to do there.
  return error == std::errc::invalid_argument ? std::error_code() : error;
}

std::error_code PosixDisk::link(const std::filesystem::path& from, const std::filesystem::path& to) {
  return check(::link(from.c_str(), to.c_str()));
}

std::error_code PosixDisk::rename(const std::filesystem::path& from, const std::filesystem::path& to) {
  return check(::rename(from.c_str(), to.c_str()));
}

std::error_code PosixDisk::remove(const std::filesystem::path& path) {
  return check(::remove(path.c_str()));
}

}  // namespace footplate
