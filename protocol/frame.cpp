#include "protocol/frame.h"

#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>

namespace footplate {
namespace {

/// Bytes that have been consumed are cut off once they are this many, not at every line.
constexpr std::size_t kCompactBytes = 64 * 1024;

}  // namespace

Result<std::optional<std::string>> LineReader::next() {
  scanned_ = std::max(scanned_, start_);
  const std::size_t end = buffer_.find('\n', scanned_);
  if (end == std::string::npos) {
    scanned_ = buffer_.size();
    if (buffer_.size() - start_ > kMaxFrameBytes)
      return fail(ErrorKind::failed, "line longer than " + std::to_string(kMaxFrameBytes) + " bytes");
    if (start_ > 0) {
      buffer_.erase(0, start_);
      scanned_ -= start_;
      start_ = 0;
    }
    return std::optional<std::string>();
  }
  if (end - start_ >= kMaxFrameBytes)
    return fail(ErrorKind::failed, "line longer than " + std::to_string(kMaxFrameBytes) + " bytes");
  std::string line = buffer_.substr(start_, end - start_);
  start_ = end + 1;
  if (start_ > kCompactBytes) {
    buffer_.erase(0, start_);
    start_ = 0;
    scanned_ = 0;
  }
  return std::optional<std::string>(std::move(line));
}

bool LineWriter::push(const Json& json) {
  return push_line(to_line(json));
}

bool LineWriter::push_line(std::string_view line) {
  if (line.size() > kMaxFrameBytes || pending() + line.size() > limit_) return false;
  buffer_ += line;
  return true;
}

bool LineWriter::flush(int fd) {
  while (start_ < buffer_.size()) {
    const ssize_t sent =
        ::send(fd, buffer_.data() + start_, buffer_.size() - start_, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent > 0) {
      start_ += static_cast<std::size_t>(sent);
      continue;
    }
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) break;
    return false;
  }
  if (start_ == buffer_.size()) {
    buffer_.clear();
    start_ = 0;
  } else if (start_ > kCompactBytes) {
    buffer_.erase(0, start_);
    start_ = 0;
  }
  return true;
}

}  // namespace footplate
