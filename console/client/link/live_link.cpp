#include "console/client/link/live_link.h"

#include <algorithm>
#include <utility>

#include "console/client/link/find_run.h"

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

int LiveLink::ask(const ClientRequest& request, Answer answer) {
  const int id = ++last_id_;
  if (!connection_) {
    answer(fail(ErrorKind::unreachable, "no connection to the console at the moment"));
    return id;
  }
  open_[id] = std::move(answer);
  const auto sent = connection_->send(request, id);
  if (sent) return id;
  if (sent.error().kind != ErrorKind::usage) {
    lose(sent.error());
  } else if (auto found = open_.extract(id)) {
    found.mapped()(tl::unexpected(sent.error()));
  }
  return id;
}

Result<Json> LiveLink::ask_now(const ClientRequest& request, std::chrono::milliseconds at_most) {
  // Shared: an answer that comes too late must not write to what is gone.
  const auto answer = std::make_shared<std::optional<Result<Json>>>();
  ask(request, [answer](Result<Json> value) { *answer = std::move(value); });
  const auto deadline = Clock::now() + at_most;
  while (!*answer && connection_) {
    auto line = connection_->receive(deadline);
    if (!line) {
      lose(line.error());
    } else if (*line) {
      take(std::move(**line));
    } else {
      break;
    }
  }
  if (*answer) return **answer;
  return fail(ErrorKind::timed_out, "no answer to '" + request.op + "' in time");
}

bool LiveLink::look() {
  if (!connection_) connect();
  for (int lines = 0; connection_; ++lines) {
    if (lines == kLinesALook) return true;
    auto line = connection_->receive(Clock::now());
    if (!line) {
      lose(line.error());
    } else if (*line) {
      take(std::move(**line));
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
  refusal_.reset();
  if (record_.elsewhere()) {  // rank 0 was lost, and another host has it now
    refusal_ = not_live(record_);
    why_not_ = refusal_->message;
    return;
  }
  auto connection = Connection::open(record_.socket(), Clock::now() + kHelloTakes);
  why_not_ = connection ? "" : connection.error().message;
  if (!connection && connection.error().kind == ErrorKind::refused) refusal_ = connection.error();
  if (!connection) return;
  connection_ = std::make_unique<Connection>(*std::move(connection));
  events_.connected(connection_->hello());
}

void LiveLink::take(ConsoleLine line) {
  auto* answer = std::get_if<RequestAnswer>(&line);
  if (answer == nullptr) return events_.said(line);
  const bool is_ours = answer->id.is_number_integer() && answer->id <= last_id_;
  if (auto found = is_ours ? open_.extract(answer->id.get<int>()) : decltype(open_)::node_type())
    found.mapped()(std::move(answer->value));
}

void LiveLink::lose(const Error& why) {
  connection_.reset();
  next_try_ = Clock::now();
  for (auto& [id, answer] : std::exchange(open_, {})) answer(tl::unexpected(why));
  events_.lost(why);
}

}  // namespace footplate
