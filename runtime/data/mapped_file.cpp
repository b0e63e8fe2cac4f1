#include "runtime/data/mapped_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

namespace footplate {

Result<MappedFile> MappedFile::open(const std::filesystem::path& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0)
    return fail(ErrorKind::usage, fmt::format("can't read {}: {}", path.string(), std::strerror(errno)));
  struct stat about {};
  void* memory = MAP_FAILED;
  if (fstat(fd, &about) == 0 && about.st_size > 0)
    memory = mmap(nullptr, static_cast<std::size_t>(about.st_size), PROT_READ, MAP_SHARED, fd, 0);
  const int error = errno;
  close(fd);
  if (about.st_size == 0) return fail(ErrorKind::usage, fmt::format("{} is empty", path.string()));
  if (memory == MAP_FAILED)
    return fail(ErrorKind::failed, fmt::format("can't map {}: {}", path.string(), std::strerror(error)));
  return MappedFile({static_cast<const std::uint8_t*>(memory), static_cast<std::size_t>(about.st_size)});
}

MappedFile::MappedFile(MappedFile&& other) noexcept : bytes_(std::exchange(other.bytes_, {})) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(bytes_, other.bytes_);
  return *this;
}

MappedFile::~MappedFile() {
  // munmap takes what mmap gave, which was never const.
  if (!bytes_.empty()) munmap(const_cast<std::uint8_t*>(bytes_.data()), bytes_.size());
}

}  // namespace footplate
