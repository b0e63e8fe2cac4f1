#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "console/client/runs/run_record.h"
#include "console/launch/run_dir/earlier_state.h"
#include "console/launch/start/plan.h"
#include "console/launch/start/slurm_job.h"
#include "protocol/settings.h"
#include "run_files/file_names.h"

namespace footplate {

/// A run directory that this process owns: nobody else runs there while `lock` or a copy of it is open.
struct RunDirectory {
  std::filesystem::path path;
  int lock = -1;
  int last_start = 0;         ///< newest config-K.json; 0 in a new directory
  bool made = false;          ///< just now: nobody else has anything in it
  EarlierState earlier = {};  ///< what it said before this start
};

/// Errors (usage): no run can have that name, with what is allowed.
Result<void> check_run_name(const std::string& name);

/// Whether all that has run in `directory` was refused before its first step (a corpus that isn't there):
/// nothing is lost where the next run of that name goes on there.
bool came_to_nothing(const std::filesystem::path& directory);

/// Takes runs/NAME. A new name makes the folder (0700). Errors (usage): the name isn't one; a live run has
/// it; an ended one has it and `go_on` is false. A run of the same `job` that Slurm has restarted since isn't
/// live, whatever its host's silence says.
Result<RunDirectory> take_run_directory(const std::string& name, bool go_on,
                                        const std::optional<SlurmJob>& job = std::nullopt);

/// Takes the first free runs/STEM-K.
Result<RunDirectory> take_free_run_directory(const std::string& stem);

/// Gives a directory back as it was, a new one as if the run had never been: for what fails before anything
/// was started.
void abandon_run_directory(const RunDirectory& directory);

/// result.json of an earlier start becomes result-K.json, so that it isn't taken for the new one's.
void set_aside_result(const std::filesystem::path& directory, int start);

/// Whether its record says that the ranks aren't ready yet: no step has been done in this start.
bool is_starting(const std::filesystem::path& directory);

/// Room for run.json and result.json, so that the run's end can be recorded on a full disk too.
void reserve_room_for_the_end(const std::filesystem::path& directory, int ranks);
void give_room_of_the_end_back(const std::filesystem::path& directory);

/// The record of a start, before its ranks: state "starting", and the step that the run was at.
RunFile starting_record(const RunPlan& plan, const std::string& socket);

}  // namespace footplate
