#pragma once

#include <filesystem>
#include <string>

namespace footplate {

// What stands in a run directory: the names of the files that both sides of the seam read or write. What is
// in them is in docs/files.md; checkpoints have names of their own (checkpoint_folders.h).
inline constexpr auto kRunFile = "run.json";                   ///< the run's record
inline constexpr auto kResultFile = "result.json";             ///< once, at the end of a start
inline constexpr auto kCommandLineFile = "command-line.json";  ///< command_line_file.h
inline constexpr auto kJobPlanFile = "jobs/jobs.json";         ///< job_plan.h
inline constexpr auto kStartsFile = "starts.jsonl";            ///< a line for each start (starts.h)
inline constexpr auto kJournalFile = "journal.lua";            ///< every applied order (applied_orders.h)
inline constexpr auto kMetricsFile = "metrics.jsonl";          ///< a line for each log event
inline constexpr auto kEventsFile = "events.jsonl";            ///< a line for everything else

/// A folder (failed_devices.h).
inline constexpr auto kFailedDevicesFolder = "failed-devices";

/// A folder, during a start: the notes (protocol/arrival.h) of ranks on other hosts than the supervisor's.
inline constexpr auto kStartNotesFolder = "starting";

/// Of a start: every setting, with its source.
inline std::string config_name(int start) {
  return "config-" + std::to_string(start) + ".json";
}
inline std::filesystem::path config_path(const std::filesystem::path& run_directory, int start) {
  return run_directory / config_name(start);
}

/// What `footplate run` was given for all its starts, without what was kept or loaded since: every setting.
inline constexpr auto kGivenFile = "given.json";

/// Of a start: orders that are committed before it trains.
inline std::filesystem::path orders_path(const std::filesystem::path& run_directory, int start) {
  return run_directory / ("orders-" + std::to_string(start) + ".json");
}

/// The result of a start that is over and was followed by another.
inline std::filesystem::path earlier_result_path(const std::filesystem::path& run_directory, int start) {
  return run_directory / ("result-" + std::to_string(start) + ".json");
}

}  // namespace footplate
