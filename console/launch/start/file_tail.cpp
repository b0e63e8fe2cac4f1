#include "console/launch/start/file_tail.h"

#include <fcntl.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <utility>

namespace footplate {
namespace {

constexpr std::size_t kMostAtOnce = 1 << 20;
constexpr std::uintmax_t kTailBytes = 256 * 1024;

}  // namespace

FileTail::FileTail(std::filesystem::path path, std::uintmax_t offset)
    : path_(std::move(path)), offset_(offset) {
  notify_ = ::inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
  if (notify_ < 0 || ::inotify_add_watch(notify_, path_.c_str(), IN_MODIFY) >= 0) return;
  // Not there yet: its folder tells, at the price of waking for its other files.
  if (::inotify_add_watch(notify_, path_.parent_path().c_str(), IN_MODIFY | IN_CREATE) < 0) {
    ::close(notify_);
    notify_ = -1;
  }
}

FileTail::~FileTail() {
  if (file_ >= 0) ::close(file_);
  if (notify_ >= 0) ::close(notify_);
}

void FileTail::read_more() {
  std::array<char, 65536> block;
  while (notify_ >= 0 && ::read(notify_, block.data(), block.size()) > 0) {
  }
  if (file_ < 0) file_ = ::open(path_.c_str(), O_RDONLY | O_CLOEXEC);
  while (file_ >= 0 && buffer_.size() < kMostAtOnce) {
    const ssize_t got = ::pread(file_, block.data(), block.size(), static_cast<off_t>(offset_));
    if (got <= 0) return;
    buffer_.append(block.data(), static_cast<std::size_t>(got));
    offset_ += static_cast<std::uintmax_t>(got);
  }
}

std::string FileTail::lines() {
  read_more();
  const auto end = buffer_.rfind('\n');
  if (end == std::string::npos) return buffer_.size() < kMostAtOnce ? "" : std::exchange(buffer_, "");
  std::string whole = buffer_.substr(0, end + 1);
  buffer_.erase(0, end + 1);
  return whole;
}

std::string FileTail::rest() {
  std::string text = lines();
  return text + std::exchange(buffer_, "");
}

std::uintmax_t offset_of_last_lines(const std::filesystem::path& path, std::size_t count) {
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  const std::streamoff size = file.tellg();
  std::array<char, 65536> block;
  std::size_t seen = 0;
  for (std::streamoff end = size; end > 0;) {
    const std::streamoff begin = std::max<std::streamoff>(0, end - static_cast<std::streamoff>(block.size()));
    file.seekg(begin);
    if (!file.read(block.data(), end - begin)) return 0;
    for (std::streamoff at = end - begin; at > 0; --at)
      if (block[static_cast<std::size_t>(at - 1)] == '\n' && begin + at != size && ++seen == count)
        return static_cast<std::uintmax_t>(begin + at);
    end = begin;
  }
  return 0;
}

std::string last_lines(const std::filesystem::path& path, std::size_t count) {
  std::error_code error;
  const std::uintmax_t size = std::filesystem::file_size(path, error);
  if (error || size == 0) return {};
  const std::uintmax_t at_least = size > kTailBytes ? size - kTailBytes : 0;
  return FileTail(path, std::max(at_least, offset_of_last_lines(path, count))).rest();
}

}  // namespace footplate
