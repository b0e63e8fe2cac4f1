#pragma once

#include <chrono>
#include <deque>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "console/host/automation/script_run.h"

namespace footplate::host {

/// What a job or a rule prints: into its log, and line by line to everyone who looks, up to a bound.
class ScriptOutput {
 public:
  /// `name`: of the log, log/NAME.log.
  ScriptOutput(std::filesystem::path log, std::string name) : log_(std::move(log)), name_(std::move(name)) {}

  /// `show`: called with each line for those who look.
  void print(const ChunkOutput& output, std::chrono::steady_clock::time_point now,
             const std::function<void(const std::string& line)>& show);
  /// A line of the console's own.
  void note(const std::string& text);

 private:
  std::filesystem::path log_;
  std::string name_;
  std::uint64_t printed_ = 0;  ///< bytes in its log
  int lines_this_second_ = 0;
  std::uint64_t lines_left_out_ = 0;
  std::chrono::steady_clock::time_point second_{};
};

/// A Lua process that runs without a client, the rules' or a job's: starts it, with a pause where it is lost
/// again and again, and has the functions of rules that wait to run in it. One thread.
class ScriptProcess {
 public:
  using Clock = ScriptRun::Clock;

  // Ids of what runs in it beside rules' functions.
  static constexpr const char* kChunkId = "r";
  static constexpr const char* kScriptId = "script";

  struct Events {
    /// Who registers: the role of what the process asks while no rule's function runs.
    std::function<Role()> role;
    /// An `eval` or `register` has ended.
    std::function<void(const ChunkEnd& end)> ended;
    /// The function of a rule has ended.
    std::function<void(Firing firing, const ChunkEnd& end)> handled;
  };

  /// `job`: its name; empty: the process of the run's rules. `run` outlives it.
  ScriptProcess(ScriptRun& run, std::uint64_t client, std::string job, Events events);
  ScriptProcess(const ScriptProcess&) = delete;
  ScriptProcess& operator=(const ScriptProcess&) = delete;

  const std::string& job() const { return job_; }
  Client& client() { return client_; }
  const Client& client() const { return client_; }
  LuaSession& lua() { return *client_.lua; }
  bool runs() const { return client_.lua && client_.lua->has_process(); }
  ScriptOutput& output() { return output_; }

  /// What its hello says beside what every Lua process is told.
  struct Start {
    SessionKind kind = SessionKind::rules;
    bool resumed = false;
    std::string script;  ///< a job's: path
    std::vector<std::string> arguments;
  };
  /// Starts the process, if it may be started now.
  bool start(const Start& start);
  void end(const Error& error);
  void send(const ToSession& message);

  /// Functions of rules that wait for their turn, and the one that runs.
  std::deque<Firing>& queue() { return queue_; }
  std::optional<Firing>& firing() { return firing_; }
  /// Whether a function runs, or one waits that can: not one whose chunk has yet to run again.
  bool has_work() const;

  /// Has a rule's function run.
  void handle(Firing firing, const HandleRule& rule);

  /// When on_time() has to be called; nothing: no moment is due.
  std::optional<Clock::time_point> deadline() const;
  void on_time();

 private:
  void request(const SessionRequest& request);
  void ended(const ChunkEnd& end);
  void print(const ChunkOutput& output);

  ScriptRun& run_;
  const std::string job_;
  Events events_;
  Client client_;  ///< its orders come from; its connection is none
  ScriptOutput output_;
  std::deque<Firing> queue_;
  std::optional<Firing> firing_;          ///< in the process
  std::deque<Clock::time_point> losses_;  ///< of the process, the latest
  Clock::time_point start_at_{};
};

}  // namespace footplate::host
