#include "runtime/comm/wake_event.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <ctime>
#include <system_error>

namespace footplate {

WakeEvent::WakeEvent() : fd_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (fd_ < 0) throw std::system_error(errno, std::generic_category(), "eventfd");
}

WakeEvent::~WakeEvent() {
  ::close(fd_);
}

void WakeEvent::wake() noexcept {
  const int saved = errno;  // a signal handler must not change it
  const std::uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = ::write(fd_, &one, sizeof one);
  errno = saved;
}

WakeEvent::Woken WakeEvent::wait(std::chrono::nanoseconds at_most, int fd0, int fd1, int fd2) {
  std::array<pollfd, 4> fds{{{fd_, POLLIN, 0}, {fd0, POLLIN, 0}, {fd1, POLLIN, 0}, {fd2, POLLIN, 0}}};
  if (at_most.count() < 0) at_most = std::chrono::nanoseconds(0);
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(at_most);
  const timespec timeout{static_cast<time_t>(seconds.count()),
                         static_cast<long>((at_most - seconds).count())};
  if (::ppoll(fds.data(), fds.size(), &timeout, nullptr) <= 0) return {};
  if (fds[0].revents != 0) {
    std::uint64_t count = 0;
    [[maybe_unused]] const ssize_t got = ::read(fd_, &count, sizeof count);
  }
  return {fds[0].revents != 0, fds[1].revents != 0, fds[2].revents != 0, fds[3].revents != 0};
}

}  // namespace footplate
