#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <limits>
#include <optional>
#include <string>

#include "protocol/messages/event.h"
#include "run_files/starts.h"

namespace footplate {

// The files of a run that get a line for each thing that happens. Also of a run that is live: a last line
// that lacks its end is no error. What is read is bounded by `most_bytes` from the file's end.

inline constexpr std::uintmax_t kWholeFile = std::numeric_limits<std::uintmax_t>::max();

/// A line of metrics.jsonl.
struct MetricsLine {
  LoggedMetrics metrics;
  std::optional<double> step;
  std::optional<double> time;  ///< seconds since the epoch
  std::string branch;
  std::int64_t start = 0;  ///< 0: not known
};

/// Calls `use` with each line. Returns how many can't be read.
std::uint64_t read_metrics_lines(const std::filesystem::path& run_directory,
                                 const std::function<void(const MetricsLine&)>& use,
                                 std::uintmax_t most_bytes = kWholeFile);

/// The same with events.jsonl. Events of a topic that this build doesn't know are passed over.
std::uint64_t read_event_lines(const std::filesystem::path& run_directory,
                               const std::function<void(const Event&)>& use,
                               std::uintmax_t most_bytes = kWholeFile);

/// The same with starts.jsonl; read_start_records() refuses what can't be read.
std::uint64_t read_start_lines(const std::filesystem::path& run_directory,
                               const std::function<void(const StartRecord&)>& use);

}  // namespace footplate
