#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "protocol/json.h"
#include "protocol/mutex.h"
#include "protocol/result.h"
#include "runtime/base/condition.h"
#include "runtime/records/append_file.h"

namespace footplate {

/// Writes rank 0's files of the run directory on a thread of its own, so that nobody who has something
/// to record waits for a disk: metrics.jsonl, events.jsonl, and the state and step in run.json. The
/// queue is bounded; what finds it full is lost and counted, and so is what the disk refuses. Any thread.
class RecordWriter {
 public:
  struct Options {
    std::filesystem::path directory;
    int start = 1;          ///< number of this start; every line of metrics carries it
    int flush_every = 200;  ///< lines of metrics that may wait,
    std::chrono::milliseconds longest_wait = std::chrono::seconds(1);  ///< no longer than this
    /// Writer's thread: files can't be written any more, or can be again. Once each time.
    std::function<void(const std::string&)> tell;
  };
  struct Lost {
    std::uint64_t queue_full = 0;
    std::uint64_t disk_refused = 0;
  };

  /// Errors (failed): a file can't be opened.
  static Result<std::unique_ptr<RecordWriter>> open(Options options);
  ~RecordWriter();  ///< writes what is queued

  /// A line of metrics.jsonl: a flat object.
  void metrics(Json line);
  /// A line of events.jsonl, {"sequence", "time", "topic", "data"}; on the disk's way at once. Sequence
  /// numbers go on from the file's last; one that is missing there was refused by the disk.
  void event(std::string topic, Json data);
  /// Members of run.json to set, soon.
  void run(const Json& fields);
  void set_flush_every(int lines);

  /// Returns once everything queued before has been handed to the disk; false where `at_most` has passed.
  bool flush(std::chrono::milliseconds at_most = std::chrono::hours(24));
  Lost lost() const;

 private:
  struct Batch {
    std::vector<Json> metrics;
    std::vector<Json> events;
    Json run = Json::object();
    bool empty() const { return metrics.empty() && events.empty() && run.empty(); }
  };

  RecordWriter(Options options, AppendFile metrics, AppendFile events);
  void work();
  bool due() const REQUIRES(mutex_);
  void write(Batch batch);
  void append(AppendFile& file, const std::vector<Json>& lines);
  void note_failure(const std::filesystem::path& file, const std::string& what);
  void note_success(const std::filesystem::path& file);

  const Options options_;
  AppendFile metrics_file_;
  AppendFile events_file_;
  std::uint64_t next_sequence_ = 1;          ///< writer's thread
  std::set<std::filesystem::path> failing_;  ///< writer's thread
  std::optional<std::int64_t> step_;         ///< writer's thread: last one in metrics

  mutable Mutex mutex_;
  Condition wanted_;
  Condition written_;
  Batch queued_ GUARDED_BY(mutex_);
  Lost lost_ GUARDED_BY(mutex_);
  std::size_t flush_every_ GUARDED_BY(mutex_);
  std::uint64_t flushes_wanted_ GUARDED_BY(mutex_) = 0;
  std::uint64_t flushes_done_ GUARDED_BY(mutex_) = 0;
  bool ending_ GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace footplate
