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
#include "run_files/file_names.h"
#include "run_files/json_file.h"

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

/// As of the last metrics; of a start that ended before it had any, the step it would have gone on from.
std::int64_t recorded_step(const fs::path& directory, const fs::path& checkpoint) {
  const auto record = read_json_file(directory / kRunFile);
  const std::int64_t step = record && record->is_object() ? integer_of(*record, "step", 0) : 0;
  const auto name = parse_folder_name(checkpoint.filename());
  return std::max(step, name ? name->step : 0);
}

Json written_for_the_ranks(const fs::path& directory, const HowEnded& how) {
  const int number = signal_of(how.wait_status);
  const int exit_code = WIFEXITED(how.wait_status) ? WEXITSTATUS(how.wait_status) : 0;
  const fs::path checkpoint = newest_checkpoint(directory);
  std::string reason = number != 0
                           ? std::string("a rank was lost to ") + signal_name(number)
                           : "the ranks ended without a result (exit code " + std::to_string(exit_code) + ")";
  // mpirun with fault tolerance: 0 although ranks were lost.
  if (number == 0 && exit_code == 0) reason = "ranks were lost; log/launcher.log may tell how";
  ExitCode code = ExitCode::failed;
  if (!how.not_started.empty()) {
    reason = how.not_started;
  } else if (how.asked) {
    reason = "signal";
    code = ExitCode::resumable;
  } else if (exit_code == static_cast<int>(ExitCode::usage)) {
    reason = "usage";
    code = ExitCode::usage;
  } else if (was_killed(number) || (number == 0 && exit_code == 0) ||
             exit_code == static_cast<int>(ExitCode::resumable) || !checkpoint.empty()) {
    code = ExitCode::resumable;
  }
  return {{"code", static_cast<int>(code)},
          {"reason", reason},
          {"step", how.step.value_or(recorded_step(directory, checkpoint))},
          {"checkpoint", checkpoint.empty() ? Json() : Json(checkpoint.string())}};
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
  return last_step(PrivateFolders::of(text_of(run.run, "id"))).value_or(run.step());
}

Json write_missing_result(const fs::path& directory, const HowEnded& how, int restarts) {
  const auto result = read_json_file(directory / kResultFile);
  const bool by_the_ranks = result && result->is_object();
  Json result_now = by_the_ranks ? *result : written_for_the_ranks(directory, how);
  if (by_the_ranks && !how.not_started.empty()) {
    // The ranks that remained have written that one was lost, but can't know which one, and where it was.
    result_now["note"] = text_of(result_now, "reason");
    result_now["reason"] = how.not_started;
  }
  if (!result_now.contains("checkpoint")) {
    const fs::path checkpoint = newest_checkpoint(directory);
    result_now["checkpoint"] = checkpoint.empty() ? Json() : Json(checkpoint.string());
  }
  result_now["restarts"] = restarts;
  [[maybe_unused]] const auto written =
      write_json_file(directory / kResultFile, result_now);  // a full disk: the code still counts
  return result_now;
}

bool is_worth_restarting(const Json& result) {
  const auto code = integer_of(result, "code", 1);
  if (code != static_cast<int>(ExitCode::failed) && code != static_cast<int>(ExitCode::resumable))
    return false;
  constexpr std::array<std::string_view, 6> kNotFailures{"done", "asked",  "restart",
                                                         "load", "signal", "time limit"};
  return std::find(kNotFailures.begin(), kNotFailures.end(), text_of(result, "reason")) == kNotFailures.end();
}

bool is_restart_ordered(const Json& result) {
  return integer_of(result, "code", 1) == static_cast<int>(ExitCode::resumable) &&
         text_of(result, "reason") == "restart";
}

Json load_ordered(const Json& result) {
  const auto load = result.find("load");
  const bool ordered = integer_of(result, "code", 1) == static_cast<int>(ExitCode::resumable) &&
                       text_of(result, "reason") == "load" && load != result.end() && load->is_object();
  return ordered ? *load : Json();
}

bool is_saved(const Json& result) {
  const auto manifest = read_json_file(fs::path(text_of(result, "checkpoint")) / kManifestName);
  return manifest && integer_of(*manifest, "step", -1) == integer_of(result, "step", 0);
}

}  // namespace footplate
