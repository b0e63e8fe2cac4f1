#pragma once

#include <cstdint>
#include <list>
#include <optional>
#include <string>
#include <vector>

#include "console/host/automation/rule_runs.h"
#include "console/host/automation/script_process.h"
#include "console/host/automation/script_run.h"

namespace footplate::host {

/// The job scripts that `footplate run --script` left in RUN/jobs (docs/protocol.md, "Job scripts"): starts
/// each in a process of its own, again where that is killed, and keeps how it ended. One thread.
class JobScripts {
 public:
  /// Both outlive it.
  JobScripts(ScriptRun& run, RuleRuns& rules) : run_(run), rules_(rules) {}

  /// Reads jobs.json. `kept`: of rules.json, what has become of each by name.
  void load(Json kept);
  const Json& kept() const { return kept_; }

  /// What scripts ask.
  Result<Json> register_rule(const Client& client, const Json& request);
  Result<Json> stop(const Client& client, const std::string& name);
  Json list() const;
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
    bool over() const { return state == "failed" || state == "stopped"; }

    ScriptProcess process;
    Json script;  ///< of jobs.json: file, path, arguments
    std::string state =
        "running";  ///< "rules" once its script has ended and left some; "done", "failed", "stopped"
    std::string error;
    int restarts = 0;  ///< after its process was killed
    bool script_sent = false;
    bool resumed = false;
    bool begins = false;  ///< this console is the first one of this start of the run that has it
  };

  void add(const Json& script);
  void run(Job& job);
  void start_script(Job& job);
  bool restart_script(Job& job, const std::string& why);
  void look_after(Job& job);
  void script_ended(Job& job, const Json& message);
  void keep_state(const Job& job);

  ScriptRun& run_;
  RuleRuns& rules_;
  std::list<Job> jobs_;
  Json kept_ = Json::object();  ///< of rules.json: {name: {"started", "given", "state"}}
  std::int64_t given_ = 0;      ///< how often job scripts were named on a command line
};

}  // namespace footplate::host
