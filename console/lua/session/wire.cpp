#include "console/lua/session/wire.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <utility>

#include "protocol/words.h"

namespace footplate::lua {
namespace {

constexpr std::size_t kOutputPiece = 128U * 1024;  ///< bytes of text in one output line: JSON may triple it

[[noreturn]] void leave() {
  ::_exit(0);
}

[[noreturn]] void leave_unread(const Error& error) {
  std::fprintf(stderr, "footplate-lua: malformed line from the console: %s\n", error.message.c_str());
  ::_exit(1);
}

/// For poll().
int milliseconds_to(std::optional<std::chrono::steady_clock::time_point> end) {
  using std::chrono::milliseconds;
  if (!end) return -1;
  const auto left = std::chrono::ceil<milliseconds>(*end - std::chrono::steady_clock::now());
  return static_cast<int>(std::clamp(left, milliseconds(0), milliseconds(std::chrono::hours(1))).count());
}

}  // namespace

void Wire::take_reply(Reply reply) {
  const std::uint64_t id = std::visit([](const auto& one) { return one.id; }, reply);
  if (const auto open = replies_.find(id); open != replies_.end()) open->second.push_back(std::move(reply));
}

/// A script that waits leaves time for the rules it has registered.
void Wire::run_handlers() {
  while (on_handle && !handling_ && !tasks_.empty() && std::holds_alternative<HandleRule>(tasks_.front())) {
    const HandleRule rule = std::get<HandleRule>(std::move(tasks_.front()));
    tasks_.pop_front();
    handling_ = true;
    const Json outer = std::exchange(task_, rule.id);
    on_handle(rule);
    task_ = outer;
    handling_ = false;
  }
}

void Wire::read(bool block, std::optional<Clock::time_point> end) {
  pollfd readable{fd_, POLLIN, 0};
  if (::poll(&readable, 1, block ? milliseconds_to(end) : 0) <= 0) return;
  std::array<char, 65536> bytes;
  const ssize_t count = ::recv(fd_, bytes.data(), bytes.size(), MSG_DONTWAIT);
  if (count < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (count <= 0) leave();
  reader_.append({bytes.data(), static_cast<std::size_t>(count)});
  for (;;) {
    auto line = reader_.next();
    if (!line) leave();
    if (!*line) return;
    auto message = parse_line(**line).and_then(to_session_from_json);
    if (!message) leave_unread(message.error());
    std::visit([this]<class Message>(Message&& one) { take(std::forward<Message>(one)); },
               *std::move(message));
  }
}

SessionHello Wire::hello() {
  while (!hello_) read(/*block=*/true);
  return *std::exchange(hello_, std::nullopt);
}

Wire::Task Wire::next() {
  while (tasks_.empty()) read(/*block=*/true);
  Task task = std::move(tasks_.front());
  tasks_.pop_front();
  task_ = std::visit([](const auto& one) { return one.id; }, task);
  return task;
}

void Wire::send(const FromSession& message) {
  const std::string line = to_line(to_json(message));
  for (std::size_t sent = 0; sent < line.size();) {
    const ssize_t count = ::send(fd_, line.data() + sent, line.size() - sent, MSG_NOSIGNAL);
    if (count < 0 && errno != EINTR) leave();
    if (count > 0) sent += static_cast<std::size_t>(count);
  }
}

Result<Json> Wire::ask(std::string_view op, Json fields, const Note& note, std::optional<Time> left) {
  const bool waits = op.starts_with("wait_");
  const bool uncounted = waits && !left;
  const auto end = left ? std::optional(Clock::now() + *left) : std::nullopt;
  const std::uint64_t id = ++asked_;
  auto& replies = replies_[id];
  if (uncounted) send(ChunkWaiting{});
  send(SessionRequest{id, std::string(op), std::move(fields)});
  Result<Json> result = fail(ErrorKind::script, "interrupted");
  // What doesn't wait is answered at once, and may have been done: an interrupt ends what comes after it.
  const auto given_up = [this, waits, end] {
    return waits && (interrupted_ || (end && Clock::now() >= *end));
  };
  for (bool answered = false; !answered && !given_up();) {
    while (replies.empty() && !given_up()) {
      if (waits) run_handlers();
      if (replies.empty()) read(/*block=*/true, end);
    }
    if (replies.empty()) break;
    Reply reply = std::move(replies.front());
    replies.pop_front();
    if (const auto* waiting = std::get_if<SessionNote>(&reply)) {
      if (note) note(waiting->value);
      continue;
    }
    answered = true;
    result = std::get<SessionAnswer>(std::move(reply)).value;
  }
  replies_.erase(id);
  if (uncounted) send(ChunkRunning{});
  return result;
}

void Wire::output(std::string_view text, OutputStream stream) {
  while (!text.empty()) {
    const std::string_view piece = first_bytes(text, kOutputPiece);
    send(ChunkOutput{task_, std::string(piece), stream});
    text.remove_prefix(piece.size());
  }
}

bool Wire::interrupted() {
  if (!interrupted_) read(/*block=*/false);
  return interrupted_;
}

}  // namespace footplate::lua
