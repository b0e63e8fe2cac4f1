#pragma once

#include <filesystem>
#include <fstream>
#include <string>

#include "console/sinks/sink.h"

namespace footplate::sinks {

/// Reads the metrics.jsonl of a run that may be live. One thread.
class MetricsFile {
 public:
  explicit MetricsFile(std::filesystem::path run_directory);

  /// Hands the lines that have come since the last call to `sink`, and flushes it. A last line without its
  /// end is left for the next call; lines that can't be read are left out. Returns how many were handed on.
  /// Errors: the sink's.
  Result<std::size_t> pass_on(Sink& sink);

 private:
  std::filesystem::path path_;
  std::ifstream file_;
  std::string rest_;  ///< of a line whose end hasn't come
};

}  // namespace footplate::sinks
