#include "console/launch/start/outlet.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>

#include "console/client/render/text.h"

namespace footplate {
namespace {

constexpr std::size_t kMostPending = 1 << 20;

/// 1 where a write of PIPE_BUF bytes won't block, 0 where it would, -1 where nobody reads any more.
int writable(int fd, std::chrono::milliseconds wait) {
  pollfd ready{fd, POLLOUT, 0};
  const int count = ::poll(&ready, 1, static_cast<int>(wait.count()));
  if (count < 0) return errno == EINTR ? 0 : -1;
  if ((ready.revents & (POLLERR | POLLNVAL)) != 0) return -1;
  return count > 0 ? 1 : 0;
}

}  // namespace

void Outlet::push(std::string_view text) {
  if (fd_ < 0 || text.empty()) return;
  // What comes at once is shown, however long it is: of a reader that takes nothing there is some already.
  if (!buffer_.empty() && buffer_.size() + text.size() > kMostPending) {
    lost_lines_ += static_cast<std::uint64_t>(std::count(text.begin(), text.end(), '\n'));
    return;
  }
  tell_lost();
  buffer_ += printable(text);
}

void Outlet::tell_lost() {
  if (lost_lines_ > 0)
    buffer_ += "(" + std::to_string(lost_lines_) + " lines left out: the reader is slow)\n";
  lost_lines_ = 0;
}

void Outlet::flush() {
  drain(std::chrono::milliseconds(0));
}

void Outlet::drain(std::chrono::milliseconds at_most) {
  const auto deadline = std::chrono::steady_clock::now() + at_most;
  while (pending()) {
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
    const int ready = writable(fd_, std::max(left, std::chrono::milliseconds(0)));
    if (ready == 0) return;
    const ssize_t written =
        ready < 0 ? -1 : ::write(fd_, buffer_.data(), std::min<std::size_t>(buffer_.size(), PIPE_BUF));
    if (written < 0 && (errno == EINTR || errno == EAGAIN) && ready > 0) return;
    if (written <= 0) {
      fd_ = -1;  // closed: the lines are in the run directory
      buffer_.clear();
      return;
    }
    buffer_.erase(0, static_cast<std::size_t>(written));
    if (buffer_.empty()) tell_lost();
  }
}

}  // namespace footplate
