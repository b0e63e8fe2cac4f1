#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <string>

#include "console/launch/run_dir/missing_result.h"
#include "console/launch/run_dir/run_directory.h"
#include "console/launch/start/child.h"
#include "console/launch/start/file_tail.h"
#include "console/launch/start/outlet.h"
#include "console/launch/start/plan.h"
#include "console/launch/start/signals.h"
#include "console/launch/supervise/alarms.h"
#include "console/launch/supervise/disk_watch.h"
#include "console/launch/supervise/janitor.h"
#include "console/launch/supervise/notifier.h"
#include "console/launch/supervise/planned_restart.h"
#include "console/launch/supervise/restart_policy.h"
#include "console/launch/supervise/start_watch.h"
#include "protocol/settings.h"
#include "run_files/private_folders.h"

namespace footplate {

/// Runs a plan to its end: starts the ranks, passes their lines on, hands signals on, restarts after
/// failures, clears up, and takes the exit code from result.json. One thread; nothing it does is on the path
/// of training.
class Supervisor {
 public:
  /// `out` gets the batch lines; what the supervisor itself has to say goes to stderr. Call run() on the main
  /// thread.
  Supervisor(RunPlan plan, Settings settings, RunDirectory directory, Signals& signals, Outlet& out);

  /// Returns the run's exit code.
  int run();

 private:
  /// What a start goes on from.
  struct Beginning {
    std::string resume;                   ///< empty: nothing; "auto", or a path
    std::optional<LoadTarget> load = {};  ///< of ckpt.load (load_ordered), whose checkpoint `resume` is
    std::int64_t left = 0;                ///< with `load`: the step that it went back from
  };
  RunResult run_starts();
  RunResult run_once(int start, const Beginning& beginning);
  /// Whether the start that ended so is started again; says so.
  bool restarts_after(const RunResult& result);
  /// Between two starts: the next one is due after `pause`.
  void record_starting(std::chrono::seconds pause);
  /// What `start`, which has ended with `result`, leaves where a signal came before the next one: as of a
  /// signal to the ranks, for the run would have gone on.
  RunResult as_stopped_between(int start, RunResult result) const;
  /// Before a start: takes the hosts that answer, and room for no device that has failed in this job. Whether
  /// there is room for a rank.
  bool place_ranks();
  /// How many such devices a host has, by its name. Says which.
  std::map<std::string, int> count_failed_devices() const;
  /// Whether one of those that the newest start was on starts no process.
  bool lacks_a_host();
  /// Which hosts start no process, and why. Empty, too, where a signal comes meanwhile.
  std::map<std::string, std::string> silent_hosts();
  /// Returns after that time, or once a signal asks for the end.
  void pause(std::chrono::seconds length);
  Beginning next_beginning(const Beginning& before, const RunResult& result) const;
  /// As the ranks of `start` read them.
  Settings settings_of(int start, const Beginning& beginning) const;
  Result<void> write_start(int start, const Beginning& beginning, const Settings& settings);
  HowEnded watch(Subprocess& child, StartWatch& start);
  /// Why the start has failed, once it has: then the ranks are ended at once.
  void look_at_start(StartWatch& start, std::string& failed);
  void on_signal(Subprocess& child, int number);
  bool is_same_request(int number) const;
  void remember_signal(int number);
  /// --requeue. `before`: the newest checkpoint as the command began.
  void put_back(const RunResult& result, const std::filesystem::path& before);
  /// --notify of a pause and of lost ranks, once for each, and of warnings that need a person; `now`: not
  /// only every second.
  void look_at_state(bool now = false);
  /// Whether no start of this command has done a step, in a run that has: then it is as it was before.
  bool leaves_no_trace() const { return !policy_.has_trained() && directory_.earlier; }
  /// What the start leaves in the run's folder, once all of its processes are gone.
  void record(const RunResult& result);
  /// --notify of the end; `explained`: explanation() of it.
  void tell_end(const RunResult& result, const std::string& explained);
  void pass_lines_on();
  /// Other hosts see by it that this process lives.
  void renew_lease_in_time();
  /// Whether another `footplate run` goes on with the run, since this host was thought to be lost.
  bool is_taken_over() const;
  /// Once mpirun has ended: whether it is that, or ranks of other hosts go on without this one's. What is in
  /// the run's folder is theirs then.
  bool others_have_it() const;
  void wait_for_something();
  /// The same between two starts: what comes of a signal then.
  void wait_between_starts();
  void end_what_lingers(Subprocess& child);

  RunPlan plan_;  ///< its hosts and ranks are those of the newest start
  const Settings settings_;
  const RunDirectory directory_;
  const PrivateFolders folders_;
  Signals& signals_;
  Outlet& out_;
  FileTail lines_;
  Notifier notifier_;
  Alarms alarms_;
  DiskWatch disk_;
  bool paused_ = false;
  int ranks_left_ = 0;        ///< of the start
  bool is_recorded_ = false;  ///< run.json has this command's id
  int started_ = 0;           ///< the newest start
  bool goes_on_elsewhere_ = false;
  RestartPolicy policy_;
  std::optional<PlannedRestart> planned_;  ///< of the newest start
  int planned_restarts_ = 0;
  std::chrono::steady_clock::time_point look_again_{};  ///< at the run's state
  std::chrono::steady_clock::time_point renew_at_{};    ///< the lease
  int stops_asked_ = 0;
  int first_signal_ = 0;  ///< that asked
  std::chrono::steady_clock::time_point signaled_at_{};
  bool came_near_end_ = false;  ///< of the Slurm job
  std::chrono::steady_clock::time_point end_by_ = std::chrono::steady_clock::time_point::max();
  const Janitor* janitor_ = nullptr;
};

}  // namespace footplate
