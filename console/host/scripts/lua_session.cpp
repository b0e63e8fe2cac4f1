#include "console/host/scripts/lua_session.h"

#include <poll.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "protocol/overloaded.h"
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

void LuaSession::take(std::unique_ptr<LuaProcess> process, const SessionHello& hello) {
  process_ = std::move(process);
  ++generation_;
  send(hello);
}

void LuaSession::send(const ToSession& message) {
  // From its answer on a chunk runs again, however late the process gets to say so: with idle priority
  // on a busy machine that can be long, and a loop of short waits would never come to its limit.
  if (const auto* answer = std::get_if<SessionAnswer>(&message); answer != nullptr && chunk_)
    answered(answer->id, Clock::now());
  if (process_ && !process_->connection().send(to_json(message))) ended(": it left too much unread");
}

void LuaSession::answered(std::uint64_t id, Clock::time_point now) {
  if (outer_ && outer_->asked == id && chunk_->asked != id)
    outer_->waiting = false;  // it goes on once the handler has ended
  else if (chunk_->asked == id)
    set_waiting(false, now);  // not what an interrupted one had asked for
}

void LuaSession::eval(const EvalChunk& chunk, Clock::time_point now, std::optional<double> limit_s) {
  begin(chunk.id, limit_s ? std::optional(seconds(*limit_s)) : std::nullopt, now);
  send(chunk);
}

void LuaSession::eval(const RegisterChunk& chunk, Clock::time_point now, double limit_s) {
  begin(chunk.id, seconds(limit_s), now);
  send(chunk);
}

void LuaSession::handle(const HandleRule& rule) {
  handler_ = Handler{rule.id, seconds(rule.budget_ms / 1e3), false};
  send(rule);
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
  send(InterruptChunk{});
  if (chunk_ && !chunk_->waiting) stop(now);
}

void LuaSession::leave(Clock::time_point now) {
  if (!chunk_ || !process_) return;
  if (!chunk_->interrupted) return interrupt(now);
  if (!chunk_->waiting && !chunk_->stop_since) stop(now);
}

void LuaSession::on_ready(short revents, Clock::time_point now) {
  Connection& connection = process_->connection();
  if (!connection.flush()) return ended(" by itself");
  if ((revents & (POLLIN | POLLHUP | POLLERR)) == 0) return;
  const Connection::Read read = connection.read();
  while (process_ != nullptr) {
    auto line = process_->connection().next_line();
    if (!line) return killed("it sent a line that is too long");
    if (!*line) break;
    const auto json = parse_line(**line);
    auto message = json ? from_session_from_json(*json) : tl::unexpected(json.error());
    if (!message) return killed("it sent something that isn't of the protocol: " + message.error().message);
    hear(*std::move(message), now);
  }
  if (read == Connection::Read::end && process_ != nullptr) ended(" by itself");
}

void LuaSession::hear(FromSession message, Clock::time_point now) {
  if (std::holds_alternative<HandlingRule>(message) && handler_ && !handler_->begun) {
    handler_->begun = true;
    return begin(handler_->id, handler_->limit, now);
  }
  if (!chunk_) return;
  std::visit(
      Overloaded{[this](const SessionRequest& request) {
                   chunk_->asked = request.id;
                   events_.request(request);
                 },
                 [this](ChunkOutput& output) {
                   output.id = chunk_->id;
                   events_.output(output);
                 },
                 [this](ChunkResult& result) {
                   result.id = finish();
                   events_.ended(std::move(result));
                 },
                 [this](ChunkError& error) {
                   ChunkFailure failure{std::move(error)};
                   failure.id = finish();
                   failure.lost = false;  // it has just spoken
                   events_.ended(tl::unexpected(std::move(failure)));
                 },
                 [this, now](const ChunkWaiting&) { set_waiting(true, now); },
                 [this, now](const ChunkRunning&) { set_waiting(false, now); }, [](const HandlingRule&) {}},
      message);
}

/// What runs has ended. Returns its id.
Json LuaSession::finish() {
  Json id = std::move(chunk_->id);
  if (handler_ && handler_->begun) handler_.reset();
  chunk_ = std::exchange(outer_, std::nullopt);
  if (chunk_) chunk_->since = Clock::now();
  return id;
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
  if (out_of_time)
    return killed((in_handler() ? "a rule" : "a chunk") + (" may run for " + shortest(limit_s) + " s"));
  end({ErrorKind::script, "the chunk's process was interrupted, and killed" + std::string(kStateLost)});
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

/// For its own fault.
void LuaSession::killed(const std::string& why) {
  end({ErrorKind::script, "the chunk's process was killed: " + why + kStateLost}, /*own_fault=*/true);
}

void LuaSession::ended(const std::string& why) {
  const auto how = process_->ended();
  end({ErrorKind::script, "the chunk's process ended" + why + (how ? " (" + *how + ")" : "") + kStateLost});
}

void LuaSession::end(const Error& error, bool own_fault) {
  process_.reset();
  std::vector<Json> ids;  // the innermost first
  if (handler_ && !handler_->begun) ids.push_back(handler_->id);
  if (chunk_) ids.push_back(chunk_->id);
  if (outer_) ids.push_back(outer_->id);
  handler_.reset();
  chunk_.reset();
  outer_.reset();
  for (Json& id : ids) {
    ChunkFailure failure;
    failure.id = std::move(id);
    failure.error = error;
    failure.lost = true;
    failure.own_fault = own_fault;
    events_.ended(tl::unexpected(std::move(failure)));
  }
}

}  // namespace footplate::host
