#pragma once

#include <functional>
#include <optional>
#include <string>

#include "console/host/run/session_limits.h"
#include "console/host/scripts/lua_process.h"
#include "protocol/messages/session_messages.h"

namespace footplate::host {

/// That a chunk, a rule's function or a registration has failed.
struct ChunkFailure : ChunkError {
  bool own_fault = true;  ///< false: its process was lost for another reason
};

/// How it has ended.
using ChunkEnd = tl::expected<ChunkResult, ChunkFailure>;

/// One client's Lua: its process, the chunk that is running, and the time that chunk has left. What a
/// chunk's own hook can't end, this ends with SIGKILL; the next chunk then gets a fresh process.
class LuaSession {
 public:
  using Clock = std::chrono::steady_clock;

  struct Events {
    std::function<void(const SessionRequest& request)> request;  ///< the script asks for something
    std::function<void(const ChunkOutput& output)> output;
    std::function<void(const ChunkEnd& end)> ended;
  };

  LuaSession(const Limits& limits, Events events) : limits_(limits), events_(std::move(events)) {}

  bool has_process() const { return process_ != nullptr; }

  /// Counts the processes: an answer to one that is gone must not reach the next.
  std::uint64_t generation() const { return generation_; }
  void take(std::unique_ptr<LuaProcess> process, const SessionHello& hello);

  bool busy() const { return chunk_.has_value() || handler_.has_value(); }

  /// Runs a chunk; `limit_s` is its running time, nothing: as long as it likes (a job's script).
  void eval(const EvalChunk& chunk, Clock::time_point now, std::optional<double> limit_s);
  /// Runs a chunk for the rules that it registers.
  void eval(const RegisterChunk& chunk, Clock::time_point now, double limit_s);

  /// Has a rule's function run, as soon as the process is free, or waits. One at a time. Its time,
  /// budget_ms, counts from then on. Where it is killed, so is the job's script around it.
  void handle(const HandleRule& rule);
  bool handling() const { return handler_.has_value(); }

  /// Whether a request that has just come is the handler's, not the script's around it.
  bool in_handler() const { return handler_ && handler_->begun; }
  void interrupt(Clock::time_point now);
  /// Nobody is left to hear of the chunk: it is interrupted, unless it has been. What an interrupted one
  /// still orders puts back what was, and a second interrupt would withdraw that.
  void leave(Clock::time_point now);

  /// Kills the process; a running chunk ends with `error`. `own_fault`: by what it has done.
  void end(const Error& error, bool own_fault = false);

  /// An answer, a note or settings; nothing where the process is gone.
  void send(const ToSession& message);

  int fd() { return process_ ? process_->connection().fd() : -1; }
  short events() { return process_->connection().events(); }
  void on_ready(short revents, Clock::time_point now);

  /// When on_time() has to be called; nothing while no chunk runs.
  std::optional<Clock::time_point> deadline() const;
  void on_time(Clock::time_point now);

 private:
  struct Chunk {
    Chunk() {}  // said, so that std::optional<Chunk> below is usable within this class
    Json id;
    std::optional<Clock::duration> limit;  ///< of running time
    std::uint64_t asked = 0;               ///< id of the last request
    Clock::duration used{};                ///< running time before `since`
    Clock::time_point since{};             ///< running, or waiting, since
    bool waiting = false;
    bool interrupted = false;
    std::optional<Clock::time_point> stop_since;  ///< it should have ended by itself since
    std::chrono::nanoseconds stop_cpu{};          ///< its processor time then
    Clock::time_point kill_look{};                ///< when to look whether it has to be killed
  };

  struct Handler {
    Json id;
    Clock::duration limit{};
    bool begun = false;
  };

  void hear(FromSession message, Clock::time_point now);
  void begin(const Json& id, std::optional<Clock::duration> limit, Clock::time_point now);
  Json finish();
  void answered(std::uint64_t id, Clock::time_point now);
  void set_waiting(bool waiting, Clock::time_point now);
  void stop(Clock::time_point now);
  bool starved(Clock::time_point now) const;
  void killed(const std::string& why);
  void ended(const std::string& why);

  const Limits& limits_;
  Events events_;
  std::unique_ptr<LuaProcess> process_;
  std::optional<Chunk> chunk_;      ///< what runs, or waits
  std::optional<Chunk> outer_;      ///< the script that waits while chunk_ is a handler
  std::optional<Handler> handler_;  ///< sent, or running
  std::uint64_t generation_ = 0;
};

}  // namespace footplate::host
