#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "protocol/result.h"
#include "runtime/profile/trace_event.h"

namespace footplate {

/// Who made a trace.
struct TraceOwner {
  int rank = 0;
  std::string host;
};

/// Writes a trace in Chrome's format (an array of events, one a line), which Perfetto and chrome://tracing
/// open: a process for the rank, a row for each TraceEvent::row in the order in which they come. Times are
/// from `origin_ns` on. By way of a temporary file. Error: of the disk, with the path.
Result<void> write_trace(const std::filesystem::path& path, const TraceOwner& owner,
                         std::span<const TraceEvent> events, std::int64_t origin_ns);

/// The file of one rank's trace, before they are merged.
std::filesystem::path rank_trace(const std::filesystem::path& folder, int rank);

/// Puts the traces of ranks 0 to `ranks` - 1 together in `folder`/trace.json, and removes them. Returns the
/// ranks whose traces aren't there: those of hosts that don't share the folder. Error: of the disk, with the
/// path.
Result<std::vector<int>> merge_traces(const std::filesystem::path& folder, int ranks);

/// Of a profile that failed: removes the traces of ranks `first` to `end` - 1, and the folder where it is
/// empty then.
void remove_traces(const std::filesystem::path& folder, int first, int end);

/// Where a profile that begins with `step` goes: `folder`/step-00000812, then step-00000812-2, …
std::filesystem::path profile_folder(const std::filesystem::path& folder, std::int64_t step,
                                     std::int64_t number);
/// The first number whose folder isn't there; 0: none of the first 1,000.
std::int64_t free_profile_number(const std::filesystem::path& folder, std::int64_t step);

inline constexpr auto kMergedTrace = "trace.json";

}  // namespace footplate
