#include "console/host/scripts/lua_session.h"

#include <poll.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "protocol/value.h"

namespace footplate::host {
namespace {

using Clock = LuaSession::Clock;

/// A wait that ends sooner was none: a loop of waits that return at once is busy.
constexpr std::chrono::milliseconds kShortWait{5};

Clock::duration seconds(double value) {
  return std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(value));
}

constexpr const char* kStateLost =
    "; this session's variables are lost, the next chunk starts with none. "
    "Nothing it had staged was applied";

}  // namespace

void LuaSession::take(std::unique_ptr<LuaProcess> process, const Json& hello) {
  process_ = std::move(process);
  ++generation_;
  send(hello);
}

void LuaSession::send(const Json& message) {
  // From its answer on a chunk runs again, however late the process gets to say so: with idle priority
  // on a busy machine that can be long, and a loop of short waits would never come to its limit.
  if (chunk_ && message.value("type", "") == "answer")
    answered(message.value("id", std::uint64_t{0}), Clock::now());
  if (process_ && !process_->connection().send(message)) lost("ended: it left too much unread");
}

void LuaSession::answered(std::uint64_t id, Clock::time_point now) {
  if (outer_ && outer_->asked == id && chunk_->asked != id)
    outer_->waiting = false;  // it goes on once the handler has ended
  else if (chunk_->asked == id)
    set_waiting(false, now);  // not what an interrupted one had asked for
}

void LuaSession::eval(const Json& message, Clock::time_point now, std::optional<double> limit_s) {
  begin(message["id"], limit_s ? std::optional(seconds(*limit_s)) : std::nullopt, now);
  send(message);
}

void LuaSession::handle(const Json& message, double limit_s) {
  handler_ = Handler{message["id"], seconds(limit_s), false};
  send(message);
}

void LuaSession::begin(const Json& id, std::optional<Clock::duration> limit, Clock::time_point now) {
  outer_ = std::move(chunk_);
  chunk_.emplace();
  chunk_->id = id;
  chunk_->limit = limit;
  chunk_->since = now;
}

void LuaSession::interrupt(Clock::time_point now) {
  if (!chunk_ || !process_) return;
  chunk_->interrupted = true;
  send({{"type", "interrupt"}});
  if (chunk_ && !chunk_->waiting) stop(now);
}

void LuaSession::on_ready(short revents, Clock::time_point now) {
  Connection& connection = process_->connection();
  if (!connection.flush()) return lost("ended by itself");
  if ((revents & (POLLIN | POLLHUP | POLLERR)) == 0) return;
  const Connection::Read read = connection.read();
  while (process_ != nullptr) {
    auto line = process_->connection().next_line();
    if (!line) return lost("was killed: it sent a line that is too long");
    if (!*line) break;
    auto message = parse_line(**line);
    if (!message || !message->is_object())
      return lost("was killed: it sent something that isn't of the protocol");
    try {
      hear(*std::move(message), now);
    } catch (const Json::exception&) {
      return lost("was killed: it sent something that isn't of the protocol");
    }
  }
  if (read == Connection::Read::end && process_ != nullptr) lost("ended by itself");
}

void LuaSession::hear(Json message, Clock::time_point now) {
  const std::string type = message.value("type", "");
  if (type == "handling" && handler_ && !handler_->begun) {
    handler_->begun = true;
    return begin(handler_->id, handler_->limit, now);
  }
  if (!chunk_) return;
  if (type == "request") {
    chunk_->asked = message.value("id", std::uint64_t{0});
    return events_.request(std::move(message));
  }
  if (type == "output") {
    message["id"] = chunk_->id;
    return events_.output(std::move(message));
  }
  if (type == "result" || type == "error") return finish(std::move(message));
  if (type == "waiting" || type == "running") set_waiting(type == "waiting", now);
}

void LuaSession::finish(Json message) {
  message["id"] = chunk_->id;
  if (handler_ && handler_->begun) handler_.reset();
  chunk_ = std::exchange(outer_, std::nullopt);
  if (chunk_) chunk_->since = Clock::now();
  events_.ended(std::move(message));
}

void LuaSession::set_waiting(bool waiting, Clock::time_point now) {
  if (waiting == chunk_->waiting) return;
  if (waiting || now - chunk_->since < kShortWait) chunk_->used += now - chunk_->since;
  chunk_->waiting = waiting;
  chunk_->since = now;
  if (waiting) chunk_->stop_since.reset();
}

std::optional<Clock::time_point> LuaSession::deadline() const {
  if (!chunk_ || chunk_->waiting) return std::nullopt;
  if (chunk_->stop_since) return chunk_->kill_look;
  if (!chunk_->limit) return std::nullopt;
  return chunk_->since + *chunk_->limit - chunk_->used;
}

void LuaSession::on_time(Clock::time_point now) {
  if (!chunk_ || chunk_->waiting || !process_) return;
  const bool out_of_time = chunk_->limit && chunk_->used + (now - chunk_->since) >= *chunk_->limit;
  if (out_of_time && !chunk_->stop_since) stop(now);
  if (!chunk_->stop_since || now < chunk_->kill_look) return;
  if (starved(now)) {
    constexpr std::chrono::milliseconds kAgain{20};
    chunk_->kill_look = now + kAgain;
    return;
  }
  process_->kill();
  const double limit_s = chunk_->limit ? std::chrono::duration<double>(*chunk_->limit).count() : 0;
  lost(out_of_time ? "was killed: " + std::string(in_handler() ? "a rule" : "a chunk") + " may run for " +
                         shortest(limit_s) + " s"
                   : "was interrupted, and killed");
}

/// From now on the chunk should end by its own hook, which needs a moment of processor time.
void LuaSession::stop(Clock::time_point now) {
  chunk_->stop_since = now;
  chunk_->stop_cpu = process_->cpu_time().value_or(std::chrono::nanoseconds{0});
  chunk_->kill_look = now + seconds(limits_.kill_s);
}

/// On a machine that is full of other work a chunk at idle priority may not have run at all since it was
/// told to stop: then it disturbs nobody, and to kill it at once would only lose the session's variables.
bool LuaSession::starved(Clock::time_point now) const {
  constexpr std::chrono::milliseconds kEnough{20};
  constexpr std::chrono::seconds kLongest{2};
  const auto cpu = process_->cpu_time();
  return cpu && *cpu - chunk_->stop_cpu < kEnough && now < *chunk_->stop_since + kLongest;
}

void LuaSession::lost(const std::string& why) {
  const auto how = process_->ended();
  const std::string signal = how && why.starts_with("ended") ? " (" + *how + ")" : "";
  end({ErrorKind::script, "the chunk's process " + why + signal + kStateLost});
}

void LuaSession::end(const Error& error) {
  process_.reset();
  std::vector<Json> ids;  // the innermost first
  if (handler_ && !handler_->begun) ids.push_back(handler_->id);
  if (chunk_) ids.push_back(chunk_->id);
  if (outer_) ids.push_back(outer_->id);
  handler_.reset();
  chunk_.reset();
  outer_.reset();
  for (const Json& id : ids)
    events_.ended({{"type", "error"}, {"id", id}, {"lost", true}, {"error", to_json(error)}});
}

}  // namespace footplate::host
