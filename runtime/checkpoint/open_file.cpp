#include "runtime/checkpoint/open_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

namespace footplate {
namespace {

constexpr std::size_t kLargestRead = std::size_t{1} << 30;

}  // namespace

OpenFile::OpenFile(int descriptor, std::filesystem::path path, Retries retries)
    : descriptor_(descriptor), path_(std::move(path)), retries_(retries) {}

OpenFile::OpenFile(OpenFile&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)),
      size_(other.size_),
      path_(std::move(other.path_)),
      retries_(other.retries_) {}

OpenFile::~OpenFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

Result<OpenFile> OpenFile::open(const std::filesystem::path& path, Retries retries) {
  for (Tries tries(retries);;) {
    std::error_code error;
    auto file = open_once(path, retries, error);
    if (file || !tries.has_another(error) || !tries.wait()) return file;
  }
}

Result<OpenFile> OpenFile::open_once(const std::filesystem::path& path, Retries retries,
                                     std::error_code& error) {
  // O_NONBLOCK: opening a FIFO returns at once, and is refused below.
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
  if (descriptor < 0) {
    error = error_of_system();
    const std::string reason = errno == ELOOP ? "is a symbolic link" : "can't be opened: " + error.message();
    return fail(ErrorKind::failed, path.string() + " " + reason);
  }
  OpenFile file(descriptor, path, retries);
  struct stat status {};
  if (::fstat(descriptor, &status) != 0) {
    error = error_of_system();
    return fail(ErrorKind::failed, path.string() + " can't be read: " + error.message());
  }
  if (!S_ISREG(status.st_mode)) return fail(ErrorKind::failed, path.string() + " is not a regular file");
  if (status.st_uid != ::geteuid() && status.st_uid != 0 && ::geteuid() != 0)
    return fail(ErrorKind::failed, path.string() + " belongs to another user; copy it to read it");
  file.size_ = static_cast<std::uint64_t>(status.st_size);
  return file;
}

Result<void> OpenFile::reopen() const {
  auto again = open(path_, retries_);
  if (!again) return tl::unexpected(again.error());
  if (again->size_ != size_)
    return fail(ErrorKind::failed, path_.string() + " became another file while it was read");
  std::swap(descriptor_, again->descriptor_);
  return {};
}

Result<void> OpenFile::read(std::span<std::byte> into, std::uint64_t offset) const {
  Tries tries(retries_);
  while (!into.empty()) {
    const ssize_t got =
        ::pread(descriptor_, into.data(), std::min(into.size(), kLargestRead), static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) {
      const std::error_code error = error_of_system();
      if (!tries.has_another(error) || !tries.wait())
        return fail(ErrorKind::failed, path_.string() + " can't be read: " + error.message());
      if (error.value() == ESTALE)
        if (auto opened = reopen(); !opened) return opened;
      continue;
    }
    if (got == 0) return fail(ErrorKind::failed, path_.string() + " became shorter while it was read");
    into = into.subspan(static_cast<std::size_t>(got));
    offset += static_cast<std::uint64_t>(got);
  }
  return {};
}

void OpenFile::leave_cache() const {
  static_cast<void>(::posix_fadvise(descriptor_, 0, 0, POSIX_FADV_DONTNEED));
}

Result<std::string> read_text(const std::filesystem::path& path, std::uint64_t limit_bytes, Retries retries) {
  const auto file = OpenFile::open(path, retries);
  if (!file) return tl::unexpected(file.error());
  if (file->size() > limit_bytes)
    return fail(ErrorKind::failed, path.string() + " has " + std::to_string(file->size()) +
                                       " bytes; at most " + std::to_string(limit_bytes) + " are read");
  std::string text(file->size(), '\0');
  auto done = file->read(std::as_writable_bytes(std::span(text)), 0);
  if (!done) return tl::unexpected(done.error());
  return text;
}

}  // namespace footplate
