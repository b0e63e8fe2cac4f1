#include "console/launch/run_dir/missing_result.h"

#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <fstream>
#include <string>

#include "console/client/runs/run_record.h"
#include "console/launch/start/signals.h"
#include "protocol/exit_codes.h"
#include "protocol/step_file_name.h"
#include "run_files/checkpoint_folders.h"
#include "run_files/checkpoint_manifest.h"
#include "run_files/file_names.h"
#include "run_files/result_file.h"

namespace footplate {
namespace {

namespace fs = std::filesystem;

constexpr int kShellSignalBase = 128;  ///< mpirun and shells return 128 + signal

/// The signal that ended the child or, by mpirun's word, one of its ranks; 0 for none.
int signal_of(int wait_status) {
  if (WIFSIGNALED(wait_status)) return WTERMSIG(wait_status);
  const int code = WIFEXITED(wait_status) ? WEXITSTATUS(wait_status) : 0;
  return code > kShellSignalBase && code < kShellSignalBase + 65 ? code - kShellSignalBase : 0;
}

/// Killed from outside, not by a fault of its own.
bool was_killed(int number) {
  return number == SIGKILL || number == SIGTERM || number == SIGHUP || number == SIGINT;
}

/// 0: there is none.
std::int64_t step_of(const fs::path& checkpoint) {
  const auto name = parse_folder_name(checkpoint.filename());
  return name ? name->step : 0;
}

/// As of the last metrics; of a start that ended before it had any, the step it would have gone on from.
std::int64_t recorded_step(const fs::path& directory, const fs::path& checkpoint) {
  const auto record = read_run_file(directory);
  return std::max(record ? record->step : 0, step_of(checkpoint));
}

RunResult written_for_the_ranks(const fs::path& directory, const HowEnded& how) {
  const int number = signal_of(how.wait_status);
  const int exit_code = WIFEXITED(how.wait_status) ? WEXITSTATUS(how.wait_status) : 0;
  const fs::path checkpoint = newest_checkpoint(directory);
  const std::string lost = how.killed.empty() ? "a rank was lost to " : how.killed + " was ended by ";
  std::string reason = number != 0
                           ? lost + signal_name(number)
                           : "the ranks ended without a result (exit code " + std::to_string(exit_code) + ")";
  // mpirun with fault tolerance: 0 although ranks were lost.
  if (number == 0 && exit_code == 0) reason = "ranks were lost; log/launcher.log may tell how";
  ExitCode code = ExitCode::failed;
  if (!how.cause.empty()) {
    reason = how.cause;
  } else if (!how.gave_up.empty()) {
    reason = how.gave_up;
    const bool can_go_on = !checkpoint.empty() || WIFSIGNALED(how.wait_status);
    code = can_go_on ? ExitCode::resumable : ExitCode::failed;
  } else if (how.asked) {
    reason = kEndedSignal;
    code = ExitCode::resumable;
  } else if (exit_code == static_cast<int>(ExitCode::usage)) {
    reason = kEndedUsage;
    code = ExitCode::usage;
  } else if (was_killed(number) || (number == 0 && exit_code == 0) ||
             exit_code == static_cast<int>(ExitCode::resumable) || !checkpoint.empty()) {
    code = ExitCode::resumable;
  }
  RunResult result;
  result.code = static_cast<int>(code);
  result.reason = reason;
  result.step = how.step ? std::max(*how.step, step_of(checkpoint)) : recorded_step(directory, checkpoint);
  if (!checkpoint.empty()) result.checkpoint = checkpoint.string();
  return result;
}

}  // namespace

std::optional<std::int64_t> last_step(const PrivateFolders& folders) {
  std::ifstream file(folders.temporary / kStepFileName, std::ios::binary);
  std::int64_t step = 0;
  if (!file.read(reinterpret_cast<char*>(&step), sizeof(step))) return std::nullopt;
  return step;
}

std::int64_t step_now(const RunRecord& run) {
  if (run.life != Life::live || run.elsewhere()) return run.step();
  return last_step(PrivateFolders::of(run.run.id)).value_or(run.step());
}

RunResult write_missing_result(const fs::path& directory, const HowEnded& how, int restarts) {
  const auto by_the_ranks = read_result_file(directory / kResultFile);
  RunResult result = by_the_ranks ? *by_the_ranks : written_for_the_ranks(directory, how);
  if (by_the_ranks && !how.cause.empty()) {
    // The ranks that remained have written that one was lost, but can't know which one, and where it was.
    result.note = result.reason;
    result.reason = how.cause;
  }
  if (by_the_ranks && !how.gave_up.empty() && result.reason == kEndedSignal) result.reason = how.gave_up;
  // A rank that gives up in the middle of a recovery leaves the search for the newest one to us.
  if (!result.checkpoint && result.code == static_cast<int>(ExitCode::resumable))
    if (const fs::path newest = newest_checkpoint(directory); !newest.empty())
      result.checkpoint = newest.string();
  result.restarts = restarts;
  [[maybe_unused]] const auto written =
      write_result_file(directory / kResultFile, result);  // a full disk: the code still counts
  return result;
}

bool is_worth_restarting(const RunResult& result) {
  if (result.code != static_cast<int>(ExitCode::failed) &&
      result.code != static_cast<int>(ExitCode::resumable))
    return false;
  constexpr std::array kNotFailures{kEndedDone,   kEndedAsked,     kEndedRestart,   kEndedLoad,
                                    kEndedSignal, kEndedTimeLimit, kEndedPauseLimit};
  return std::find(kNotFailures.begin(), kNotFailures.end(), result.reason) == kNotFailures.end();
}

bool is_restart_ordered(const RunResult& result) {
  return result.code == static_cast<int>(ExitCode::resumable) && result.reason == kEndedRestart;
}

std::optional<LoadTarget> load_ordered(const RunResult& result) {
  const bool ordered = result.code == static_cast<int>(ExitCode::resumable) && result.reason == kEndedLoad;
  return ordered ? result.load : std::nullopt;
}

bool is_saved(const RunResult& result) {
  const auto manifest =
      result.checkpoint ? read_checkpoint_manifest(*result.checkpoint) : std::optional<CheckpointManifest>();
  return manifest && manifest->step == result.step;
}

}  // namespace footplate
