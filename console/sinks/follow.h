#pragma once

#include <filesystem>
#include <fstream>
#include <string>

#include "console/sinks/sink.h"

namespace footplate::sinks {

/// Reads the metrics.jsonl of a run that may be live. One thread.
class MetricsFile {
 public:
  explicit MetricsFile(const std::filesystem::path& run_directory);

  /// Hands the lines that have come since the last call to `sink`, and flushes it. A last line without its
  /// end is left for the next call: its writer may cut it off again (a full disk, a rank that was killed).
  /// Lines that can't be read are left out. Returns how many were handed on.
  /// Errors: the sink's.
  Result<std::size_t> pass_on(Sink& sink);

 private:
  MetricsRow next_row(const LoggedMetrics& line);

  std::filesystem::path path_;
  std::ifstream file_;
  std::streamoff read_ = 0;  ///< bytes of whole lines
  int start_ = 0;            ///< of the last line of training, and its step
  std::int64_t step_ = 0;
  int went_back_ = 0;  ///< in this start
};

}  // namespace footplate::sinks
