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
  /// `reports`: what is known of orders.
  void begin(const RunIdentity& run, const RunStatus& status, const std::vector<const OrderReport*>& reports);

  // What happens in the run.
  void status(const RunStatus& status);
  void event(const EventData& data, std::uint64_t hold);
  void order_report(const OrderReport& report);
  void settings(const SettingsUpdate& update);

  // What scripts ask.
  Outcome register_chunk(const Client& client, RuleChunks::Registration registration);
  /// Of a job's script; the rule's number.
  Result<std::int64_t> register_rule(const Client& client, const RuleSpec& spec);
  Result<void> switch_off(const Client& client, std::int64_t rule);
  /// Ends a job's script, and its rules. So it stays for new consoles and starts, until --script names it
  /// again.
  Result<void> stop_job(const Client& client, const std::string& name) { return jobs_.stop(client, name); }
  /// Whether any rule or job lives, and has to know what happens as it happens.
  bool follows() const;
  std::vector<RuleStatus> rules() const;
  std::vector<JobStatus> jobs() const { return jobs_.list(); }

  // The loop.
  std::vector<LuaSession*> processes();
  std::optional<Clock::time_point> deadline() const;
  void on_time(Clock::time_point now);

  /// The run is at its end: on("stop") runs, and what a job has printed is kept. True while something still
  /// runs.
  bool ending();
  void end(const Error& error);

 private:
  void load(const std::vector<const OrderReport*>& reports);
  void keep_damaged(const std::vector<std::string>& lost);
  void settle(Rule& rule, const std::vector<const OrderReport*>& reports);
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
