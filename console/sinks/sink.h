#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "protocol/messages/event.h"
#include "protocol/result.h"

namespace footplate::sinks {

/// A line of metrics.jsonl.
struct MetricsRow {
  double time = 0;  ///< seconds since the epoch
  int start = 0;    ///< of the run: 1 for the first
  std::string branch;
  std::int64_t step = 0;
  std::vector<std::pair<std::string, double>> values;  ///< by name, "train/loss"; those that are numbers
  int went_back = 0;  ///< how often its start had gone back to a checkpoint in place: some steps are repeated
};

/// The row of a line; what it lacks is as in a row that nobody filled.
MetricsRow row_of(const LoggedMetrics& line);

/// Somewhere that people look at metrics, in its own format. It is written by a process of its own, which
/// reads the run's files: none of it can cost a step. One thread.
class Sink {
 public:
  virtual ~Sink() = default;

  /// Errors (failed): the operating system's.
  virtual Result<void> write(const MetricsRow& row) = 0;
  /// What has been written so far can be read by others.
  virtual Result<void> flush() = 0;
};

/// What a sink writes about, and where.
struct SinkTarget {
  std::filesystem::path out;  ///< a file or a folder, as the kind says
  std::string run;            ///< name
};

/// A line of the table. A new sink is one file, and its line in sinks.cpp.
struct SinkKind {
  const char* name;
  const char* help;        ///< what it makes, for `footplate export --help`
  const char* usual_name;  ///< of its file or folder in the run directory
  Result<std::unique_ptr<Sink>> (*open)(const SinkTarget& target);
};

/// All kinds, in the order that help shows them.
const std::vector<SinkKind>& sink_kinds();

/// Error (usage): there is none of this name; with the nearest.
Result<const SinkKind*> find_sink_kind(const std::string& name);

Result<std::unique_ptr<Sink>> open_csv(const SinkTarget& target);
Result<std::unique_ptr<Sink>> open_tensorboard(const SinkTarget& target);
Result<std::unique_ptr<Sink>> open_prometheus(const SinkTarget& target);

}  // namespace footplate::sinks
