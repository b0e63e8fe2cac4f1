#include "runtime/records/append_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "protocol/json.h"

namespace footplate {
namespace {

std::error_code last_error() {
  return {errno, std::generic_category()};
}

off_t size_of_file(int descriptor) {
  struct stat status {};
  return ::fstat(descriptor, &status) == 0 ? status.st_size : 0;
}

/// The file's end, at most a frame and its newline.
std::string tail_of(int descriptor) {
  const off_t size = size_of_file(descriptor);
  const off_t from = std::max<off_t>(0, size - static_cast<off_t>(kMaxFrameBytes) - 1);
  std::string text(static_cast<std::size_t>(size - from), '\0');
  const ssize_t got = ::pread(descriptor, text.data(), text.size(), from);
  text.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
  return text;
}

/// Cuts off what follows the last newline: a line that a crash interrupted.
std::error_code cut_torn_line(int descriptor) {
  const std::string tail = tail_of(descriptor);
  const auto newline = tail.rfind('\n');
  const std::size_t torn = newline == std::string::npos ? tail.size() : tail.size() - newline - 1;
  if (torn == 0) return {};
  const off_t whole = size_of_file(descriptor) - static_cast<off_t>(torn);
  return ::ftruncate(descriptor, whole) == 0 ? std::error_code() : last_error();
}

}  // namespace

AppendFile::AppendFile(std::filesystem::path path, int descriptor)
    : path_(std::move(path)), descriptor_(descriptor) {}

AppendFile::AppendFile(AppendFile&& other) noexcept
    : path_(std::move(other.path_)), descriptor_(std::exchange(other.descriptor_, -1)) {}

AppendFile::~AppendFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

Result<AppendFile> AppendFile::open(const std::filesystem::path& path) {
  const int descriptor = ::open(path.c_str(), O_RDWR | O_CREAT | O_APPEND | O_NOFOLLOW | O_CLOEXEC, 0600);
  if (descriptor < 0)
    return fail(ErrorKind::failed, "can't open " + path.string() + ": " + last_error().message());
  AppendFile file(path, descriptor);
  if (auto error = cut_torn_line(descriptor))
    return fail(ErrorKind::failed, "can't repair " + path.string() + ": " + error.message());
  return file;
}

std::error_code AppendFile::append(std::string_view lines) {
  const off_t before = size_of_file(descriptor_);
  while (!lines.empty()) {
    const ssize_t written = ::write(descriptor_, lines.data(), lines.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) {
      const std::error_code error =
          written < 0 ? last_error() : std::make_error_code(std::errc::no_space_on_device);
      // Making a file shorter works on a full disk too.
      return ::ftruncate(descriptor_, before) == 0 ? error : last_error();
    }
    lines.remove_prefix(static_cast<std::size_t>(written));
  }
  return {};
}

std::string AppendFile::last_line() const {
  std::string tail = tail_of(descriptor_);
  if (tail.empty()) return {};
  tail.pop_back();
  const auto newline = tail.rfind('\n');
  if (newline == std::string::npos) return tail.size() < kMaxFrameBytes ? tail : std::string();
  return tail.substr(newline + 1);
}

}  // namespace footplate
