#pragma once

#include <cstdint>
#include <list>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "console/host/automation/rule_runs.h"
#include "console/host/automation/script_process.h"
#include "console/host/automation/script_run.h"
#include "run_files/job_plan.h"

namespace footplate::host {

/// The job scripts that `footplate run --script` left in RUN/jobs (docs/protocol.md, "Job scripts"): starts
/// each in a process of its own, again where that is killed, and keeps how it ended. One thread.
class JobScripts {
 public:
  /// Both outlive it.
  JobScripts(ScriptRun& run, RuleRuns& rules) : run_(run), rules_(rules) {}

  /// Reads jobs.json. `kept`: of rules.json, what has become of each by name.
  void load(std::map<std::string, KeptJob> kept);
  const std::map<std::string, KeptJob>& kept() const { return kept_; }

  /// What scripts ask.
  Result<std::int64_t> register_rule(const Client& client, RuleSpec spec);
  Result<void> stop(const Client& client, const std::string& name);
  std::vector<JobStatus> list() const;
  /// Whether any script runs.
  bool any_runs() const;

  ScriptProcess& process_of(const std::string& job);
  std::vector<ScriptProcess*> processes();

  // The loop.
  /// When on_time() has to be called; nothing: no moment is due.
  std::optional<ScriptRun::Clock::time_point> deadline() const;
  void on_time();
  /// Whether any has functions of rules to run.
  bool have_work() const;

 private:
  struct Job {
    Job(ScriptRun& run, std::uint64_t client, std::string name, ScriptProcess::Events events)
        : process(run, client, std::move(name), std::move(events)) {}
    const std::string& name() const { return process.job(); }
    const std::string& path() const { return script.path.empty() ? name() : script.path; }
    bool over() const { return state == JobState::failed || state == JobState::stopped; }

    ScriptProcess process;
    PlannedJob script;
    JobState state = JobState::running;
    std::string error;
    int restarts = 0;  ///< after its process was killed
    bool script_sent = false;
    bool resumed = false;
    bool begins = false;  ///< this console is the first one of this start of the run that has it
  };

  void add(const PlannedJob& script);
  void run(Job& job);
  void start_script(Job& job);
  bool restart_script(Job& job, const std::string& why);
  void look_after(Job& job);
  void script_ended(Job& job, const ChunkEnd& end);
  void give_up(Job& job, const std::string& why);
  bool has_rules(const Job& job) const;  ///< that may fire
  void keep_state(const Job& job);

  ScriptRun& run_;
  RuleRuns& rules_;
  std::list<Job> jobs_;
  std::map<std::string, KeptJob> kept_;  ///< of rules.json
  std::int64_t given_ = 0;               ///< how often job scripts were named on a command line
};

}  // namespace footplate::host
