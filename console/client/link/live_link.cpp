#include "console/client/link/live_link.h"

#include <algorithm>
#include <utility>

namespace footplate {
namespace {

using namespace std::chrono_literals;

constexpr auto kTryEvery = 100ms;
constexpr auto kHelloTakes = 500ms;  ///< of a console that has accepted; it speaks at once

}  // namespace

LiveLink::LiveLink(std::filesystem::path run_directory, Events events)
    : directory_(std::move(run_directory)), events_(std::move(events)) {
  if (auto record = read_run(directory_)) record_ = *std::move(record);
}

int LiveLink::ask(Json request, Answer answer) {
  const int id = ++last_id_;
  if (!connection_) {
    answer(fail(ErrorKind::unreachable, "no connection to the console at the moment"));
    return id;
  }
  request["id"] = id;
  open_[id] = std::move(answer);
  const auto sent = connection_->send(request);
  if (sent) return id;
  if (sent.error().kind != ErrorKind::usage) {
    lose(sent.error());
  } else if (auto found = open_.extract(id)) {
    found.mapped()(tl::unexpected(sent.error()));
  }
  return id;
}

Result<Json> LiveLink::ask_now(Json request, std::chrono::milliseconds at_most) {
  // Shared: an answer that comes too late must not write to what is gone.
  const auto answer = std::make_shared<std::optional<Result<Json>>>();
  const std::string name = text_of(request, "op");
  ask(std::move(request), [answer](Result<Json> value) { *answer = std::move(value); });
  const auto deadline = Clock::now() + at_most;
  while (!*answer && connection_) {
    auto line = connection_->receive(deadline);
    if (!line) {
      lose(line.error());
    } else if (*line) {
      take(**line);
    } else {
      break;
    }
  }
  if (*answer) return **answer;
  return fail(ErrorKind::timed_out, "no answer to '" + name + "' in time");
}

bool LiveLink::look() {
  if (!connection_) connect();
  for (int lines = 0; connection_; ++lines) {
    if (lines == kLinesALook) return true;
    auto line = connection_->receive(Clock::now());
    if (!line) {
      lose(line.error());
    } else if (*line) {
      take(**line);
    } else {
      return false;
    }
  }
  return false;
}

std::chrono::milliseconds LiveLink::patience() const {
  if (connection_) return 1s;
  return std::max(0ms, std::chrono::ceil<std::chrono::milliseconds>(next_try_ - Clock::now()));
}

void LiveLink::connect() {
  if (Clock::now() < next_try_) return;
  next_try_ = Clock::now() + kTryEvery;
  auto record = read_run(directory_);
  if (!record) return;
  record_ = *std::move(record);
  if (record_.life != Life::live) return;
  auto connection = Connection::open(record_.socket(), Clock::now() + kHelloTakes);
  if (!connection) return;
  connection_ = std::make_unique<Connection>(*std::move(connection));
  events_.connected(connection_->hello());
}

void LiveLink::take(const Json& message) {
  if (!message.is_object()) return;
  const std::string type = text_of(message, "type");
  if (type != "result" && type != "error") return events_.said(message);
  auto found = open_.extract(static_cast<int>(integer_of(message, "id", 0)));
  if (!found) return;
  if (type == "result")
    found.mapped()(message.value("value", Json()));
  else
    found.mapped()(tl::unexpected(error_of(message)));
}

void LiveLink::lose(const Error& why) {
  connection_.reset();
  next_try_ = Clock::now();
  for (auto& [id, answer] : std::exchange(open_, {})) answer(tl::unexpected(why));
  events_.lost(why);
}

}  // namespace footplate
