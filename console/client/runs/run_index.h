#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "console/client/runs/run_record.h"

namespace footplate {

/// The folder that new runs go to: $FOOTPLATE_RUNS, or ./runs.
std::filesystem::path runs_folder();

/// What footplate keeps of this user between its runs: $XDG_STATE_HOME/footplate, by default
/// ~/.local/state/footplate; empty where there is no home.
std::filesystem::path state_folder();

/// The folder with one symbolic link per run of this user on this host, in the XDG state folder
/// ($XDG_STATE_HOME/footplate/runs, by default ~/.local/state/footplate/runs); empty where there is no home.
std::filesystem::path index_folder();

/// Adds a run to the index. Best effort: without an index, commands find runs in runs_folder().
void add_to_index(const std::filesystem::path& run_directory);

/// Takes a run out of the index. Best effort.
void remove_from_index(const std::filesystem::path& run_directory);

/// Runs of the index and of runs_folder(), each once, newest first. Links to runs that were deleted are
/// removed.
std::vector<RunRecord> known_runs();

}  // namespace footplate
