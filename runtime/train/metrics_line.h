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
#include "runtime/train/step_totals.h"

namespace footplate {

// The flat objects of metrics.jsonl. One line has what is due after the same step: each kind of metrics of
// training adds its own (docs/files.md, "Metrics").

/// Only its step, the number of completed ones, and the time.
Json line_at(std::int64_t step);

/// log.every.
struct LightMetrics {
  double loss = 0;
  double learning_rate = 0;
  double epoch = 0;
  std::map<std::string, double> of_task;  ///< what the task declares, of the last step
  std::int64_t nonfinite = 0;             ///< steps so far that weren't finite
};
void add_to(Json& line, const LightMetrics& metrics);

/// log.perf_every.
struct Performance {
  StepTotals of;                  ///< the steps since the last time
  std::string unit = kUsualUnit;  ///< what `tokens` are
  double flops_per_token = 0;     ///< 0: not known
  double peak_tflops = 0;         ///< of all ranks together; 0: not known
};
void add_to(Json& line, const Performance& performance);

/// What rank 0 has of memory, in bytes.
struct MemoryInUse {
  std::int64_t resident = 0;           ///< its process; 0: the system doesn't tell
  std::optional<DeviceMemory> device;  ///< where a device has its own
};

/// log.detail_every.
struct Details {
  double grad_norm = 0;  ///< of the last step
  StepTotals of;         ///< the steps since the last time; on a device the last one alone
  MemoryInUse memory;
};
void add_to(Json& line, const Details& details);

/// log.gpu_every.
void add_to(Json& line, const GaugeReading& reading);

/// log.dataset_every. Of the steps since the last time: each data set's loss and metrics, and how far it is.
struct SetLine {
  std::string name;
  SetMetrics metrics;
  std::int64_t drawn = 0;
  double epoch = 0;
};
void add_to(Json& line, const std::vector<SetLine>& sets);

/// Of the last epoch, as far as this process has trained it.
struct EpochSums {
  StepTotals of;
  double memory_gib = 0;  ///< on average; 0: not known
};
void add_to(Json& line, const EpochSums& sums);

/// `best`: the lowest loss of the whole evaluations so far, infinity where there was none (then left out).
/// `sets`: the task's, in the order of the metrics.
Json eval_line(std::int64_t step, const EvalResult& result, double best, std::span<const v1::DataSet> sets);
/// `local`: what rank 0 has found by itself, if anything.
Json eval_failed_line(std::int64_t step, const Error& error, const std::optional<LocalEvaluation>& local,
                      std::span<const v1::DataSet> sets);

}  // namespace footplate
