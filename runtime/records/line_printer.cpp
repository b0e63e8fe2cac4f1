#include "runtime/records/line_printer.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>

namespace footplate {
namespace {

constexpr std::size_t kQueuedOutput = 4096;
/// What a pipe that poll() calls writable takes without blocking (PIPE_BUF).
constexpr std::size_t kPieceBytes = 4096;
constexpr int kLookMs = 100;  ///< how often a stuck reader is given up or not
constexpr std::chrono::seconds kFarewell{1};

/// A closed pipe is then an error here and nothing else.
void block_sigpipe() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGPIPE);
  ::pthread_sigmask(SIG_BLOCK, &signals, nullptr);
}

/// Descriptor of our own. A terminal is opened anew, without blocking: poll() calls one writable that
/// takes less than a line, and O_NONBLOCK on the shared description would reach the shell.
int open_own(int descriptor) {
  if (::isatty(descriptor) != 0) {
    const std::string path = "/proc/self/fd/" + std::to_string(descriptor);
    const int own = ::open(path.c_str(), O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (own >= 0) return own;
  }
  return ::fcntl(descriptor, F_DUPFD_CLOEXEC, 3);
}

}  // namespace

LinePrinter::LinePrinter(int descriptor) : descriptor_(open_own(descriptor)), thread_([this] { work(); }) {}

LinePrinter::~LinePrinter() {
  {
    MutexLock lock(mutex_);
    ending_ = true;
  }
  changed_.notify_all();
  thread_.join();
  if (descriptor_ >= 0) ::close(descriptor_);
}

void LinePrinter::print(std::string line) {
  {
    MutexLock lock(mutex_);
    if (queue_.size() == kQueuedOutput) {
      ++dropped_;
      return;
    }
    queue_.push_back(std::move(line));
  }
  changed_.notify_all();
}

std::uint64_t LinePrinter::dropped() const {
  MutexLock lock(mutex_);
  return dropped_;
}

void LinePrinter::work() {
  pthread_setname_np(pthread_self(), "printer");
  block_sigpipe();
  bool reader = descriptor_ >= 0;
  for (;;) {
    std::string line;
    {
      MutexLock lock(mutex_);
      changed_.wait(lock, [this]() REQUIRES(mutex_) { return ending_ || !queue_.empty(); });
      if (queue_.empty()) return;
      line = std::move(queue_.front());
      queue_.pop_front();
    }
    if (reader) reader = write_line(line + "\n");
  }
}

bool LinePrinter::writable_in_time() {
  auto given_up = std::chrono::steady_clock::time_point::max();
  for (;;) {
    pollfd ready{descriptor_, POLLOUT, 0};
    const int count = ::poll(&ready, 1, kLookMs);
    if (count > 0) return (ready.revents & (POLLERR | POLLNVAL)) == 0;
    if (count < 0 && errno != EINTR) return false;
    const auto now = std::chrono::steady_clock::now();
    MutexLock lock(mutex_);
    if (ending_ && given_up == std::chrono::steady_clock::time_point::max()) given_up = now + kFarewell;
    if (now >= given_up) return false;
  }
}

bool LinePrinter::write_line(const std::string& line) {
  for (std::size_t sent = 0; sent < line.size();) {
    if (!writable_in_time()) return false;
    const ssize_t count = ::write(descriptor_, line.data() + sent, std::min(line.size() - sent, kPieceBytes));
    if (count < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (count < 0 && errno != ENOSPC) return false;
    if (count < 0) return true;  // a full disk behind stdout: this line is lost, the next may not be
    sent += static_cast<std::size_t>(count);
  }
  return true;
}

}  // namespace footplate
