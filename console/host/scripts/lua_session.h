#pragma once

#include <functional>
#include <optional>
#include <string>

#include "console/host/run/session_limits.h"
#include "console/host/scripts/lua_process.h"

namespace footplate::host {

/// One client's Lua: its process, the chunk that is running, and the time that chunk has left. What a
/// chunk's own hook can't end, this ends with SIGKILL; the next chunk then gets a fresh process.
class LuaSession {
 public:
  using Clock = std::chrono::steady_clock;

  struct Events {
    std::function<void(Json request)> request;  ///< the script asks something of docs/protocol.md
    std::function<void(Json message)> output;   ///< for the client
    std::function<void(Json message)> ended;    ///< the chunk's result or error
  };

  LuaSession(const Limits& limits, Events events) : limits_(limits), events_(std::move(events)) {}

  bool has_process() const { return process_ != nullptr; }

  /// Counts the processes: an answer to one that is gone must not reach the next.
  std::uint64_t generation() const { return generation_; }
  void take(std::unique_ptr<LuaProcess> process, const Json& hello);

  bool busy() const { return chunk_.has_value() || handler_.has_value(); }

  /// Runs a chunk; `limit_s` is its running time, nothing: as long as it likes (a job's script).
  void eval(const Json& message, Clock::time_point now, std::optional<double> limit_s);

  /// Sends a `handle` (docs/protocol.md): it runs as soon as the process is free, or waits. One at a time.
  /// Its time counts from then on. Where it is killed, so is the job's script around it.
  void handle(const Json& message, double limit_s);
  bool handling() const { return handler_.has_value(); }

  /// Whether a request that has just come is the handler's, not the script's around it.
  bool in_handler() const { return handler_ && handler_->begun; }
  void interrupt(Clock::time_point now);

  /// Kills the process; a running chunk ends with `error`.
  void end(const Error& error);

  /// An answer or a note; nothing where the process is gone.
  void send(const Json& message);

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

  void hear(Json message, Clock::time_point now);
  void begin(const Json& id, std::optional<Clock::duration> limit, Clock::time_point now);
  void finish(Json message);
  void answered(std::uint64_t id, Clock::time_point now);
  void set_waiting(bool waiting, Clock::time_point now);
  void stop(Clock::time_point now);
  bool starved(Clock::time_point now) const;
  void lost(const std::string& why);

  const Limits& limits_;
  Events events_;
  std::unique_ptr<LuaProcess> process_;
  std::optional<Chunk> chunk_;      ///< what runs, or waits
  std::optional<Chunk> outer_;      ///< the script that waits while chunk_ is a handler
  std::optional<Handler> handler_;  ///< sent, or running
  std::uint64_t generation_ = 0;
};

}  // namespace footplate::host
