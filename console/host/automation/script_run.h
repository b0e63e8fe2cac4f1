#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <utility>

#include "console/host/automation/rule_table.h"
#include "console/host/scripts/client.h"
#include "protocol/messages/session_messages.h"

namespace footplate::host {

/// What rules and jobs need of the console.
struct ScriptPorts {
  std::function<void(Client& from, const SessionRequest& request)> request;  ///< of a script
  std::function<SessionHello(const Client& of)> hello;  ///< to a Lua process, without its kind
  std::function<Result<std::unique_ptr<LuaProcess>>()> process;
  std::function<Result<std::string>(Client& from, Order order)> submit;
  std::function<void(const ConsoleMessage& message)> to_rank;
  std::function<void(std::uint64_t client)> forget_waits;
  std::function<std::int64_t()> step;
  std::function<LoggedMetrics()> metrics;
  std::function<void(const std::string& text)> log;
};

/// The run as its rules and jobs see it, what is due in it, and how they say something in it. The members are
/// theirs to use. One thread.
struct ScriptRun {
  using Clock = std::chrono::steady_clock;

  static constexpr std::uint64_t kFirstClient = std::uint64_t{1} << 32;  ///< beyond any real client's number

  ScriptRun(std::filesystem::path run_directory, const Limits& its_limits, ScriptPorts its_ports);

  /// An event that rank 0 puts into the run's records.
  void publish(EventData data) { ports.to_rank(PublishEvent{std::move(data)}); }
  void warn_of(const Rule& rule, const std::string& text);
  void warn_of(const std::string& job, const std::string& text);

  /// An order of the console's own, in the name of the run's owner. `argument`: the one of the action that
  /// says why.
  void act(const std::string& action, const char* argument, const std::string& why);

  /// Whether the run is at its end, by itself or by a stop of a rule or job: errors change nothing any more.
  bool ends() const { return state == RunState::ending || state == RunState::ended || stopping; }

  const std::filesystem::path directory;
  const Limits& limits;
  const ScriptPorts ports;
  RuleTable table;
  Client own;  ///< its own orders: a stop after an error

  std::string started;    ///< this start of the run
  std::string begun;      ///< the start whose on("start") has run
  std::int64_t left = 0;  ///< step that ckpt.load went back from, to this start
  RunState state = RunState::starting;
  double step_ms = 0;       ///< a step's time
  bool placed = false;      ///< the first step of this start is known
  bool unattended = false;  ///< nobody looks: an error of a script stops the run
  bool new_start = false;   ///< no console of this start was there before
  bool stopped = false;     ///< on("stop") has been fired
  bool stopping = false;    ///< a stop of its own is on its way
  bool dirty = false;       ///< rules.json has to be written
  bool forget = false;      ///< rules have ended: their chunks may go, once nobody holds a reference
  Clock::time_point now{};
};

}  // namespace footplate::host
