#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "console/host/automation/script_process.h"
#include "console/host/automation/script_run.h"

namespace footplate::host {

/// Has the functions of rules that are due run in their processes, and says what comes of it: an error, the
/// last run of one that fires once, or that training may go on, which waits for rules with sync = true. Which
/// rule is due, RuleTable says. One thread.
class RuleRuns {
 public:
  /// `process_of`: where a rule's function lives. `run` outlives it.
  RuleRuns(ScriptRun& run, std::function<ScriptProcess&(const Rule&)> process_of)
      : run_(run), process_of_(std::move(process_of)) {}

  /// Puts functions that are due in line. `hold`: training waits for those with sync = true.
  void fire(std::vector<Firing> firings, std::uint64_t hold = 0);

  /// Has the next function in line run in `process`, which is free.
  void send_next(ScriptProcess& process);

  /// A function has ended.
  void handled(ScriptProcess& process, Firing firing, const ChunkEnd& end);

  /// An order of `rule` has been decided: training doesn't wait for more of it.
  void decided(std::int64_t rule);

  /// The function won't run, or has: training doesn't wait for it any more.
  void release(const Firing& firing) { release(firing.hold, firing.rule); }

  void switch_off(Rule& rule, const std::string& why);
  /// Those of a job.
  void switch_off_all(const std::string& job, const std::string& why);

  /// Tells rank 0 how long training waits for rules, where that has changed.
  void tell_sync();

 private:
  void queue(ScriptProcess& process, Firing firing, bool first);
  void leave_out(Rule& rule);
  void retry_or_fail(ScriptProcess& process, Firing firing, const ChunkFailure& failure);
  void failed(Rule& rule, const std::string& error, std::int64_t step);
  void release(std::uint64_t hold, std::int64_t rule);

  ScriptRun& run_;
  std::function<ScriptProcess&(const Rule&)> process_of_;
  std::map<std::uint64_t, std::set<std::int64_t>> holds_;  ///< rules that training waits for
  std::map<Topic, double> told_sync_;
  std::uint64_t last_handle_ = 0;
};

}  // namespace footplate::host
