#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "protocol/messages/event.h"
#include "runtime/train/gauge_reader.h"
#include "runtime/train/metrics_line.h"
#include "runtime/train/train_step.h"
#include "runtime/train/training.h"

namespace footplate {

/// The kinds of metrics that are due after a step.
struct DueMetrics {
  std::optional<std::map<std::string, double>> of_task;  ///< log.every: what the task declares, of this step
  std::optional<std::vector<SetMetrics>> sets;           ///< log.dataset_every: of each, in their order
  bool details = false, performance = false, gauges = false;
  std::optional<Json> collectives;  ///< comm.metrics_every: fields of a line
  bool has_line = false;            ///< whether sums of an epoch may come
};

/// What training tells: lines of metrics, which go to the sink and nowhere else, events for the console, and
/// lines for people. Adds up the steps that each kind of metrics is of. Training thread.
class Reporter {
 public:
  explicit Reporter(Training& training) : training_(training) {}

  /// A line for people, in this rank's log.
  void log(const std::string& text) const;
  /// The same, in rank 0's alone.
  void say(const std::string& text) const;
  /// An event of rank 0's, while run() runs.
  void publish(EventData event) const;
  /// say(), and the event.
  void warn(WarningKind kind, std::int64_t step, const std::string& text) const;

  /// A line of metrics, of rank 0's.
  void write(Json line) const;

  /// The settings in force; kinds of metrics that were off before begin with the next step.
  void configure(const StepSettings& before);
  /// A step begins, after which details are due or not.
  void before_step(bool details);
  /// It is done.
  void count(const StepOutcome& outcome);
  /// What was counted of this epoch doesn't count.
  void begin_epoch();
  /// One line of all that is due after it, the sums of an epoch that it ends among them.
  void write_step(const DueMetrics& due);

  /// At the start, and where an order changes it: where and how it computes. The kernel of attention is
  /// LibTorch's choice, by shapes and precision.
  void tell_computing();
  /// Then, too: of settings of the data that change nothing here.
  void tell_data();
  /// Then, too: of a warm-up that the run is too short for, and of a schedule that the task doesn't follow.
  void warn_of_schedule();

 private:
  double epoch() const;
  bool has_ended_epoch() const;
  void end_epoch();
  void watch_device();
  std::optional<GaugeReading> newest_reading();
  Json line_of(const DueMetrics& due);
  LightMetrics light(const std::map<std::string, double>& of_task) const;
  Performance performance() const;
  Details details();
  std::vector<SetLine> sets(const std::vector<SetMetrics>& of_sets) const;
  EpochSums epoch_sums();
  MemoryInUse memory();

  Training& training_;
  StepOutcome last_;
  StepTotals done_;               ///< since this process began
  PhaseTimes at_step_, in_vain_;  ///< as the step under way began; of steps that came to nothing, in all
  bool in_step_ = false;
  StepTotals at_details_, at_performance_, at_epoch_;  ///< when each was written last
  double memory_gib_ = 0;                              ///< a sum of readings, of this epoch
  int memory_readings_ = 0;
  // Of a device, where rank 0 has one: how long its phases take, and what it tells of itself.
  std::unique_ptr<TimeMarks> marks_;
  std::optional<PhaseTimes> of_step_;   ///< the last one, where it was marked
  std::optional<PhaseTimes> of_epoch_;  ///< the sum of this epoch's steps that were
  std::optional<EpochSums> ended_;      ///< of the last epoch, until they are written
  std::unique_ptr<GaugeReader> gauges_;
  std::string computing_;        ///< as it was told last
  std::string data_, schedule_;  ///< the same
};

}  // namespace footplate
