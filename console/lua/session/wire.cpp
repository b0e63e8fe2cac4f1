#include "console/lua/session/wire.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <utility>

namespace footplate::lua {
namespace {

constexpr std::size_t kOutputPiece = 128U * 1024;  ///< bytes of text in one output line: JSON may triple it

[[noreturn]] void leave() {
  ::_exit(0);
}

}  // namespace

void Wire::sort(Json message) {
  const std::string type = message.value("type", "");
  if (type == "hello" || type == "eval" || type == "register" || type == "handle")
    requests_.push_back(std::move(message));
  else if (type == "interrupt")
    interrupted_ = true;
  else if (type == "settings" && on_settings)
    on_settings(message.value("settings", Json::object()));
  else if (type == "answer" || type == "note")
    if (const auto open = answers_.find(message.value("id", std::uint64_t{0})); open != answers_.end())
      open->second.push_back(std::move(message));
}

/// A script that waits leaves time for the rules it has registered.
void Wire::run_handlers() {
  while (on_handle && !handling_ && !requests_.empty() && requests_.front().value("type", "") == "handle") {
    const Json request = std::move(requests_.front());
    requests_.pop_front();
    handling_ = true;
    const Json outer = std::exchange(eval_, request.value("id", Json()));
    on_handle(request);
    eval_ = outer;
    handling_ = false;
  }
}

void Wire::read(bool block) {
  pollfd readable{fd_, POLLIN, 0};
  if (::poll(&readable, 1, block ? -1 : 0) <= 0) return;
  std::array<char, 65536> bytes;
  const ssize_t count = ::recv(fd_, bytes.data(), bytes.size(), MSG_DONTWAIT);
  if (count < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (count <= 0) leave();
  reader_.append({bytes.data(), static_cast<std::size_t>(count)});
  for (;;) {
    auto line = reader_.next();
    if (!line) leave();
    if (!*line) return;
    if (auto message = parse_line(**line); message && message->is_object()) sort(*std::move(message));
  }
}

Json Wire::next() {
  while (requests_.empty()) read(/*block=*/true);
  Json request = std::move(requests_.front());
  requests_.pop_front();
  return request;
}

void Wire::send(const Json& message) {
  const std::string line = to_line(message);
  for (std::size_t sent = 0; sent < line.size();) {
    const ssize_t count = ::send(fd_, line.data() + sent, line.size() - sent, MSG_NOSIGNAL);
    if (count < 0 && errno != EINTR) leave();
    if (count > 0) sent += static_cast<std::size_t>(count);
  }
}

Result<Json> Wire::ask(std::string_view op, Json fields, const Note& note) {
  const bool waits = op.starts_with("wait_");
  const std::uint64_t id = ++asked_;
  fields["type"] = "request";
  fields["op"] = op;
  fields["id"] = id;
  auto& answers = answers_[id];
  if (waits) send({{"type", "waiting"}});
  send(fields);
  Result<Json> result = fail(ErrorKind::script, "interrupted");
  for (bool answered = false; !answered && !interrupted_;) {
    while (answers.empty() && !interrupted_) {
      if (waits) run_handlers();
      if (answers.empty()) read(/*block=*/true);
    }
    if (answers.empty()) break;
    const Json message = std::move(answers.front());
    answers.pop_front();
    if (message["type"] == "note") {
      if (note) note(message.value("value", Json::object()));
      continue;
    }
    answered = true;
    if (const auto error = message.find("error"); error != message.end())
      result = tl::unexpected(error_from_json(*error));
    else
      result = message.value("value", Json());
  }
  answers_.erase(id);
  if (waits) send({{"type", "running"}});
  return result;
}

void Wire::output(std::string_view text, Stream stream) {
  const char* name = stream == Stream::out ? "out" : "talk";
  for (std::size_t start = 0; start < text.size(); start += kOutputPiece)
    send({{"type", "output"},
          {"id", eval_},
          {"text", std::string(text.substr(start, kOutputPiece))},
          {"stream", name}});
}

bool Wire::interrupted() {
  if (!interrupted_) read(/*block=*/false);
  return interrupted_;
}

}  // namespace footplate::lua
