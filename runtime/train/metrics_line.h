#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "protocol/json.h"
#include "protocol/messages/event.h"
#include "protocol/result.h"
#include "runtime/device/compute_device.h"
#include "runtime/tasks/task_sums.h"
#include "runtime/train/evaluation_result.h"
#include "runtime/train/phase_timer.h"

namespace footplate {

/// What a logging step knows of its training.
struct TrainMetrics {
  double loss = 0;
  double learning_rate = 0;
  double epoch = 0;
  double grad_norm = 0;
  std::map<std::string, double> of_task;  ///< what the task declares, of the last step
  std::int64_t steps = 1;                 ///< since the last line: what the times are averaged over
  std::int64_t tokens = 0;                ///< of all ranks, since the last line
  std::string unit = kUsualUnit;          ///< what they are
  std::int64_t nonfinite = 0;             ///< steps so far that weren't finite
  double flops_per_token = 0;             ///< 0: not known
  double peak_tflops = 0;                 ///< of all ranks together; 0: not known
  std::optional<DeviceMemory> memory;     ///< where a device has its own
};

/// The flat objects of metrics.jsonl. `step` is the number of completed steps.
Json train_line(std::int64_t step, const TrainMetrics& metrics, const PhaseTimer& timer);
/// `best`: the lowest loss of the whole evaluations so far, infinity where there was none (then left out).
/// `sets`: the task's, in the order of the metrics.
Json eval_line(std::int64_t step, const EvalResult& result, double best, std::span<const v1::DataSet> sets);
/// Of the steps since the last such line: each data set's loss and metrics, and how far it is.
struct SetLine {
  std::string name;
  SetMetrics metrics;
  std::int64_t drawn = 0;
  double epoch = 0;
};
Json sets_line(std::int64_t step, const std::vector<SetLine>& sets);
Json eval_failed_line(std::int64_t step, const Error& error);

}  // namespace footplate
