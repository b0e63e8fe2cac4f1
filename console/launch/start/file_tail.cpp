#include "console/launch/start/file_tail.h"

#include <fcntl.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <array>
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

std::string last_lines(const std::filesystem::path& path, std::size_t count) {
  std::error_code error;
  const std::uintmax_t size = std::filesystem::file_size(path, error);
  if (error || size == 0) return {};
  FileTail tail(path, size > kTailBytes ? size - kTailBytes : 0);
  const std::string text = tail.rest();
  std::size_t start = text.size();
  for (std::size_t seen = 0; start > 0; --start)
    if (text[start - 1] == '\n' && start != text.size() && ++seen == count) break;
  return text.substr(start);
}

}  // namespace footplate
