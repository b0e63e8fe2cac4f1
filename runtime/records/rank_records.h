#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "protocol/messages/best_evaluation.h"
#include "protocol/messages/event.h"
#include "protocol/mutex.h"
#include "protocol/settings.h"
#include "run_files/starts.h"
#include "runtime/orders/gate_events.h"
#include "runtime/records/line_printer.h"
#include "runtime/records/rank_log.h"
#include "runtime/records/record_writer.h"
#include "runtime/state/ports.h"

namespace footplate {

/// What a rank leaves in the run directory: log/rank-N.log, and on rank 0 run.json, starts.jsonl,
/// metrics.jsonl, events.jsonl, result.json, and the batch lines on stdout. Nobody who calls waits for a
/// disk or a reader, save in started() and ended(). Any thread.
class RankRecords final : public Sink {
 public:
  /// `start` is the number K of config-K.json. Takes log.level, log.flush_every and train.steps from
  /// `settings`, and follows them as orders change them. Error (failed): a file can't be opened.
  static Result<std::unique_ptr<RankRecords>> open(const std::filesystem::path& directory, int rank,
                                                   int start, const Settings& settings);

  /// This rank has become rank 0, since the one of before was lost: it goes on with that one's files.
  /// Nobody else uses the records meanwhile. Error (failed): a file can't be opened.
  Result<void> take_over();
  /// train.steps, which the start has found out.
  void set_steps(std::int64_t steps) { steps_ = steps; }
  /// Rank 0: who is where now, for run.json.
  void world(const Json& ranks, const std::string& host);

  /// Rank 0, once all ranks are there: a line of starts.jsonl, and who is where in run.json.
  void started(const StartRecord& start, const Json& ranks);

  // What control's observer gets.

  void observe(const EventData& event);
  /// Every rank, of itself.
  void applied(const OrderApplied& applied);
  void console_started(pid_t pid);
  /// Waits until they and the log are written, a second each at most: the disk may hang.
  void flush();
  /// The log alone.
  void flush_log();

  /// Rank 0: a line of metrics.jsonl.
  void write(const Json& metrics) override;
  /// Any rank: what last_evaluation() and full_loss() tell of it.
  void keep(const Json& metrics) override;

  void info(const std::string& text);
  void warn(const std::string& text);
  /// In the log alone: of what is an event as well.
  void log_warning(const std::string& text);

  /// Rank 0, once, at the end: result.json, on the device when this returns; state and step in run.json.
  void ended(const RunResult& result);

  /// Rank 0: id of the last order that was applied in this start; 0: none.
  std::uint64_t last_order() const { return last_order_; }
  /// eval/loss of the last evaluation of all that eval.batches chooses, and eval/step; empty: there
  /// was none.
  LoggedMetrics last_evaluation() const;
  /// The loss of everything held out, where that is more; nothing: there was none in this start.
  std::optional<double> full_loss() const;
  /// Rank 0: the run's best evaluation, for run.json; nothing: none yet.
  void best(const std::optional<BestEvaluation>& best);
  /// The last evaluation, as it was when the checkpoint was saved that this start goes on from.
  void resumed(LoggedMetrics last_evaluation);

 private:
  RankRecords(std::filesystem::path directory, int start, const Settings& settings);
  Result<void> open_writer();
  void follow(const Moved& moved);
  void print(const EventData& event);

  const std::filesystem::path directory_;
  const int start_;
  std::int64_t flush_every_;  ///< control thread
  std::atomic<std::int64_t> steps_;
  std::atomic<std::uint64_t> last_order_{0};
  mutable Mutex mutex_;
  LoggedMetrics last_evaluation_ GUARDED_BY(mutex_);
  std::optional<double> full_loss_ GUARDED_BY(mutex_);
  // In this order: the writer tells the log and the printer until its thread has ended.
  std::unique_ptr<Log> log_;
  std::unique_ptr<LinePrinter> printer_;
  std::unique_ptr<RecordWriter> writer_;
};

/// result.json, also where nothing else could be opened.
Result<void> write_result(const std::filesystem::path& directory, const RunResult& result);

/// The same where there is none yet: another rank may have been first. What goes wrong goes unsaid, as at the
/// end of a process. Any thread.
void write_result_if_missing(const std::filesystem::path& directory, const RunResult& result);

}  // namespace footplate
