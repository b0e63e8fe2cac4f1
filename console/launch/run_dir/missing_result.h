#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "console/client/runs/run_record.h"
#include "protocol/messages/run_result.h"
#include "run_files/private_folders.h"

namespace footplate {

/// How the ranks of one start ended, as far as the supervisor saw it.
struct HowEnded {
  int wait_status = 0;                              ///< of mpirun, or of the only rank
  bool asked = false;                               ///< a signal to `footplate run` had asked for the end
  std::optional<std::int64_t> step = std::nullopt;  ///< rank 0's last one, where it could say (last_step)
  std::string cause = {};    ///< not empty: why nothing was started, or which rank a start was lost with
  std::string gave_up = {};  ///< not empty: why all ranks were ended, which nobody had asked for
  std::string killed = {};   ///< not empty: what the signal has ended in place of a rank
};

/// The step that rank 0 was at when it ended, from the private folders: to be asked before they are removed.
std::optional<std::int64_t> last_step(const PrivateFolders& folders);

/// The step that a run is at: of a live one of this host as rank 0's training thread has it, else as
/// recorded, which may be some seconds old.
std::int64_t step_now(const RunRecord& run);

/// result.json of a start that is over. The ranks write it; where they could not (killed, crashed), it is
/// written here: code 75 where the run can go on (a checkpoint exists, the end was asked for, or a rank was
/// killed), else 1, or 2 where the rank said so. `restarts` is put into it.
RunResult write_missing_result(const std::filesystem::path& directory, const HowEnded& how, int restarts);

/// Whether a start that ended so is started again under --restarts: failures are, what was asked for isn't,
/// nor what would fail again (usage).
bool is_worth_restarting(const RunResult& result);

/// Whether it ended to be started again: run.restart.
bool is_restart_ordered(const RunResult& result);

/// Where it goes back to, if it ended for that (ckpt.load).
std::optional<LoadTarget> load_ordered(const RunResult& result);

/// Whether the checkpoint of a start that ended so is of its last step: nothing is lost where it goes on.
bool is_saved(const RunResult& result);

}  // namespace footplate
