#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "protocol/messages/event.h"
#include "runtime/train/metrics_line.h"
#include "runtime/train/train_step.h"
#include "runtime/train/training.h"

namespace footplate {

/// What training tells: lines of metrics, which go to the sink and nowhere else, events for the console, and
/// lines for people. Adds up the steps that the next line of metrics is of. Training thread.
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

  /// A step is done.
  void count(const StepOutcome& outcome);
  /// The line of the steps since the last one.
  /// `of_task`: the metrics that the task declares, of the last step.
  void write_steps(const std::map<std::string, double>& of_task);
  /// The line of several data sets, in their order.
  void write_sets(const std::vector<SetMetrics>& of_sets) const;

  /// At the start, and where an order changes it: where and how it computes. The kernel of attention is
  /// LibTorch's choice, by shapes and precision.
  void tell_computing();
  /// Then, too: of settings of the data that change nothing here.
  void tell_data();
  /// Then, too: of a warm-up that the run is too short for.
  void warn_of_warmup();

 private:
  double epoch() const;
  TrainMetrics metrics(const std::map<std::string, double>& of_task) const;

  Training& training_;
  StepOutcome last_;
  std::int64_t tokens_ = 0, steps_ = 0;  ///< since the last line
  std::string computing_;                ///< as it was told last
  std::string data_, warmup_;            ///< the same
};

}  // namespace footplate
