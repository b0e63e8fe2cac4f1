#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "protocol/settings.h"
#include "runtime/device/attention.h"
#include "runtime/device/mixed_precision.h"
#include "runtime/optim/optimizer_settings.h"
#include "runtime/train/schedule.h"

namespace footplate {

/// Whether large reductions go in two levels.
enum class Hierarchy { automatic, off };
template <>
struct EnumWords<Hierarchy> {
  static constexpr std::array kAll{std::pair{Hierarchy::automatic, std::string_view("auto")},
                                   std::pair{Hierarchy::off, std::string_view("off")}};
};

/// When a bucket of gradients is reduced.
enum class Overlap { automatic, on, off };
template <>
struct EnumWords<Overlap> {
  static constexpr std::array kAll{std::pair{Overlap::automatic, std::string_view("auto")},
                                   std::pair{Overlap::on, std::string_view("on")},
                                   std::pair{Overlap::off, std::string_view("off")}};
};

/// Who evaluates.
enum class EvalMode { all, one, off };
template <>
struct EnumWords<EvalMode> {
  static constexpr std::array kAll{std::pair{EvalMode::all, std::string_view("all")},
                                   std::pair{EvalMode::one, std::string_view("one")},
                                   std::pair{EvalMode::off, std::string_view("off")}};
};

/// What there is of a rank's sharded state besides what it has itself (ckpt.redundancy).
enum class Redundancy { none, memory };
template <>
struct EnumWords<Redundancy> {
  static constexpr std::array kAll{std::pair{Redundancy::none, std::string_view("none")},
                                   std::pair{Redundancy::memory, std::string_view("memory")}};
};

/// What comes of a step whose gradients or loss aren't finite.
enum class Nonfinite { skip, pause, stop };
template <>
struct EnumWords<Nonfinite> {
  static constexpr std::array kAll{std::pair{Nonfinite::skip, std::string_view("skip")},
                                   std::pair{Nonfinite::pause, std::string_view("pause")},
                                   std::pair{Nonfinite::stop, std::string_view("stop")}};
};

/// The settings that the step loop reads, as plain fields: looked up once when they change, not at
/// every step. What has no Interval is in steps, 0 = never.
struct StepSettings {
  std::int64_t batch_size = 0;   ///< global, in sequences
  std::int64_t micro_batch = 0;  ///< 0: the whole slice
  std::int64_t data_offset = 0;  ///< sequences that are passed over
  std::int64_t workers = -1;     ///< threads that load; -1: as many as there are cores for
  std::int64_t prefetch = 2;     ///< batches that each of them loads ahead
  double clip_norm = 0;          ///< 0: off
  Schedule schedule;
  OptimizerSettings optimizer;
  double bucket_mb = 0;
  std::int64_t chunk_elements = 0;  ///< 0: by size
  Hierarchy hierarchy = Hierarchy::automatic;
  Overlap overlap = Overlap::automatic;
  Interval eval_every, ckpt_every, log_every;
  Interval log_sets_every;  ///< never where log.datasets is off
  Interval detail_every, perf_every, gpu_every, log_comm_every;
  bool log_epochs = true;  ///< with log.reduced false, and the five above are never
  std::int64_t check_every = 0;
  bool ckpt_async = true;
  double ckpt_retry_s = 0;  ///< 0: never
  std::int64_t keep_best = 0;
  std::int64_t eval_batches = 0;  ///< 0: everything held out
  std::int64_t eval_batch_size = 1;
  EvalMode eval_mode = EvalMode::all;
  std::chrono::milliseconds eval_meet_timeout{0};  ///< by eval_mode
  Nonfinite nonfinite = Nonfinite::skip;
  Precision precision = Precision::fp32;
  Precision param_dtype = Precision::fp32;
  AttentionKernel attention = AttentionKernel::automatic;
  std::int64_t empty_cache_every = 0;
  bool eval_at_end = true;
  bool eval_async = false;
  bool checks_collectives = false;  ///< debug.collectives
  bool anomaly = false;             ///< debug.anomaly

  bool cuda_graph = false;
  bool gradient_checkpointing = false;
  double peak_tflops = 0;                ///< of a rank; 0: the device's
  std::map<std::string, Value> of_task;  ///< task.NAME

  static StepSettings from(const Settings& settings);

 private:
  void read_monitoring(const Settings& settings);
};

/// Whether something that is done every so many steps is due after `step` of them; 0: never.
constexpr bool is_due(std::int64_t every, std::int64_t step) {
  return every > 0 && step % every == 0;
}

/// Whether a step does the same work by both, on as many samples: what is recorded of it stays true.
bool does_the_same(const StepSettings& some, const StepSettings& others);

}  // namespace footplate
