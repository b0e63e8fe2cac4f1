#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <vector>

#include "console/host/automation/job_scripts.h"
#include "console/host/automation/rule_chunks.h"
#include "console/host/automation/rule_runs.h"
#include "console/host/automation/script_process.h"
#include "console/host/automation/script_run.h"

namespace footplate::host {

/// What runs without a client: the run's rules, in a Lua process of their own, and its job scripts, in one
/// each. Kept in rules.json, so that a new console, a new Lua process and a new start of the run go on with
/// them. Brings what happens in the run to its parts: RuleTable (which rule is due), RuleRuns (their
/// functions), RuleChunks (their source), JobScripts. On the console's thread.
class Automation {
 public:
  using Clock = ScriptRun::Clock;
  using Ports = ScriptPorts;
  using Outcome = RuleChunks::Outcome;

  Automation(std::filesystem::path run_directory, const Limits& limits, Ports ports);

  /// With rank 0's hello: reads rules.json and jobs.json, and starts what they have.
  void begin(const Json& run, const Json& status, const Json& reports);

  // What happens in the run.
  void status(const Json& status);
  void event(const std::string& topic, const Json& data, std::uint64_t hold);
  void order_report(const Json& report);
  /// What on("order") and run.wait{ event = "order" } get.
  static Json order_event(const Json& report);
  void settings(const Json& message);

  // What scripts ask.
  Outcome register_chunk(const Client& client, const Json& request);
  Result<Json> register_rule(const Client& client, const Json& request);  ///< of a job's script
  Result<Json> switch_off(const Client& client, std::int64_t rule);
  /// Ends a job's script, and its rules. So it stays for new consoles and starts, until --script names it
  /// again.
  Result<Json> stop_job(const Client& client, const std::string& name) { return jobs_.stop(client, name); }
  /// Whether any rule or job lives, and has to know what happens as it happens.
  bool follows() const;
  Json rules() const;
  Json jobs() const { return jobs_.list(); }

  // The loop.
  std::vector<LuaSession*> processes();
  std::optional<Clock::time_point> deadline() const;
  void on_time(Clock::time_point now);

  /// The run is at its end: on("stop") runs, and what a job has printed is kept. True while something still
  /// runs.
  bool ending();
  void end(const Error& error);

 private:
  void load(const Json& reports);
  void settle(Rule& rule, const Json& reports);
  void save(bool durable);
  void run_rules();
  ScriptProcess::Events rules_events();
  std::vector<ScriptProcess*> all_processes();

  ScriptRun run_;
  RuleRuns rules_;
  RuleChunks chunks_;
  ScriptProcess rules_process_;
  JobScripts jobs_;
  bool begun_here_ = false;
};

}  // namespace footplate::host
