#include "runtime/console_link/console_link.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <cstring>

namespace footplate {
namespace {

constexpr std::size_t kQueueBytes = 8 << 20;
/// Events are dropped when this much is unread; the rest is kept for what may not be lost.
constexpr std::size_t kEventBytes = 4 << 20;
constexpr std::size_t kReadBytes = 64 << 10;
constexpr std::chrono::milliseconds kFirstBackoff{50};
constexpr std::size_t kBackoffDoublings = 5;
/// A console that dies at once costs rank 0 a spawn a second at most; clients are to be back within 2 s.
constexpr std::chrono::milliseconds kLongestBackoff{1000};
/// What a full socket couldn't take is tried again after this.
constexpr std::chrono::milliseconds kFlushAgain{10};

}  // namespace

ConsoleLink::ConsoleLink(Parts parts) : parts_(std::move(parts)) {
  std::error_code error;
  const std::filesystem::path path = parts_.run_directory / "log" / "console.log";
  std::filesystem::create_directories(path.parent_path(), error);
  log_ = Fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
  if (!log_) parts_.warn("the console has no log: can't open " + path.string() + ": " + std::strerror(errno));
}

void ConsoleLink::pump(Clock::time_point now) {
  if (lost_) {
    lost_ = false;
    process_.reset();
    if (now - started_ >= parts_.survives) starts_.clear();
    while (!starts_.empty() && now - starts_.front() > std::chrono::minutes(1)) starts_.pop_front();
    const auto doubled = kFirstBackoff * (1 << std::min<std::size_t>(starts_.size(), kBackoffDoublings));
    next_start_ = now + std::min<Clock::duration>(doubled / 2, kLongestBackoff);
  }
  if (!process_ && now >= next_start_) start(now);
  if (process_) read_lines();
  if (process_ && !lost_) flush();
}

ConsoleLink::Clock::time_point ConsoleLink::next_pump() const {
  if (lost_) return Clock::time_point{};
  if (!process_) return next_start_;
  return writer_->empty() ? Clock::time_point::max() : Clock::now() + kFlushAgain;
}

void ConsoleLink::start(Clock::time_point now) {
  starts_.push_back(now);
  started_ = now;
  auto process = ConsoleProcess::start(parts_.program, parts_.run_directory, log_.get());
  if (!process) {
    lost_ = true;
    warn_once(process.error().message);
    return;
  }
  process_ = *std::move(process);
  reader_.emplace();
  writer_.emplace(kQueueBytes);
  parts_.started(process_->pid());
  send(parts_.hello());
}

void ConsoleLink::read_lines() {
  std::array<char, kReadBytes> bytes;
  const ssize_t got = ::recv(process_->fd(), bytes.data(), bytes.size(), MSG_DONTWAIT);
  if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)) return;
  if (got <= 0) {
    lose(got == 0 ? "it closed its connection" : std::strerror(errno));
    return;
  }
  reader_->append({bytes.data(), static_cast<std::size_t>(got)});
  for (;;) {
    auto line = reader_->next();
    if (!line) return lose(line.error().message);
    if (!*line) return;
    const auto json = parse_line(**line);
    if (!json || !json->is_object()) return lose("it sent something that isn't a JSON object");
    auto message = console_message_from_json(*json);
    if (message)
      parts_.on_message(*std::move(message));
    else
      parts_.warn("the console sent a line that says nothing here: " + message.error().message);
  }
}

void ConsoleLink::send(const RankZeroMessage& message) {
  if (!process_ || lost_) return;
  const Json line = to_json(message);
  if (writer_->push(line))
    flush();
  else if (const std::size_t bytes = to_line(line).size(); bytes > kMaxFrameBytes)
    parts_.warn("a message to the console has " + std::to_string(bytes) +
                " bytes, and is left out; at most " + std::to_string(kMaxFrameBytes) +
                " can be sent at once");
  else
    lose("it doesn't read what it is sent");
}

void ConsoleLink::send_event(const RankZeroMessage& message) {
  if (!process_ || lost_ || writer_->pending() > kEventBytes) return;
  if (writer_->push(to_json(message))) flush();
}

void ConsoleLink::flush() {
  if (!writer_->flush(process_->fd())) lose("its connection is gone");
}

void ConsoleLink::lose(const std::string& why) {
  if (lost_) return;
  lost_ = true;
  process_->kill();
  warn_once("the console ended (" + why + "); another one is started, its log is log/console.log");
}

/// Where none lives for as long as it takes, the same comes with each try: for days, where a program was
/// removed under a run.
void ConsoleLink::warn_once(const std::string& text) {
  if (Clock::now() - started_ < parts_.survives && text == last_warning_) return;
  last_warning_ = text;
  parts_.warn(text);
}

void ConsoleLink::finish(const RunEnd& end, std::chrono::milliseconds at_most) {
  const auto deadline = Clock::now() + at_most;
  send(end);
  while (process_ && !lost_ && !writer_->empty() && Clock::now() < deadline) {
    pollfd writable{process_->fd(), POLLOUT, 0};
    ::poll(&writable, 1, static_cast<int>(kFlushAgain.count()));
    flush();
  }
  if (process_ && !lost_) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now());
    if (!process_->await_end(std::max(left, std::chrono::milliseconds(0)))) process_->kill();
  }
  process_.reset();
  next_start_ = Clock::time_point::max();
}

}  // namespace footplate
