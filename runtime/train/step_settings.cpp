#include "runtime/train/step_settings.h"

#include <algorithm>
#include <tuple>

#include "runtime/tasks/declared_schema.h"

namespace footplate {

StepSettings StepSettings::from(const Settings& settings) {
  StepSettings read;
  read.batch_size = settings.integer("train.batch_size");
  read.micro_batch = settings.integer("train.micro_batch");
  read.data_offset = settings.integer("data.offset");
  read.workers = settings.integer("data.workers");
  read.prefetch = settings.integer("data.prefetch");
  read.clip_norm = settings.number("train.clip_norm");
  read.schedule = Schedule::from(settings);
  read.optimizer = OptimizerSettings::from(settings);
  read.bucket_mb = settings.number("comm.bucket_mb");
  read.chunk_elements = settings.integer("comm.chunk_elements");
  read.hierarchy = choice_of<Hierarchy>(settings, "comm.hierarchy");
  read.overlap = choice_of<Overlap>(settings, "comm.overlap");
  read.eval_every = settings.interval("eval.every");
  read.ckpt_every = settings.interval("ckpt.every");
  read.ckpt_async = settings.boolean("ckpt.async");
  read.keep_best = settings.integer("ckpt.keep_best");
  read.check_every = settings.integer("guard.check_every");
  read.ckpt_retry_s = settings.number("ckpt.retry_s");
  read.log_every = settings.interval("log.every");
  read.read_monitoring(settings);
  read.eval_batches = settings.integer("eval.batches");
  read.precision = choice_of<Precision>(settings, "train.precision");
  read.param_dtype = choice_of<Precision>(settings, "train.param_dtype");
  read.attention = choice_of<AttentionKernel>(settings, "train.attention");
  read.empty_cache_every = settings.integer("train.empty_cache_every");
  read.eval_at_end = settings.boolean("eval.at_end");
  read.eval_async = settings.boolean("eval.async");
  read.checks_collectives = settings.string("debug.collectives") == "detail";
  read.anomaly = settings.boolean("debug.anomaly");
  read.eval_batch_size = settings.integer("eval.batch_size");
  read.eval_mode = choice_of<EvalMode>(settings, "eval.mode");
  double meet_timeout_s = settings.number("eval.meet_timeout_s");
  if (read.eval_mode == EvalMode::one)  // what rank 0 takes alone is no lateness
    meet_timeout_s = std::max(meet_timeout_s, settings.number("comm.eval_timeout_s"));
  read.eval_meet_timeout =
      std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::duration<double>(meet_timeout_s));
  read.nonfinite = choice_of<Nonfinite>(settings, "guard.nonfinite");
  read.cuda_graph = settings.boolean("train.cuda_graph");
  read.gradient_checkpointing = settings.boolean("train.gradient_checkpointing");
  read.peak_tflops = settings.number("run.peak_tflops");
  read.of_task = declared_values(settings);
  return read;
}

/// What log.reduced turns off stays at never.
void StepSettings::read_monitoring(const Settings& settings) {
  log_epochs = !settings.boolean("log.reduced");
  if (!log_epochs) return;
  if (settings.boolean("log.datasets")) log_sets_every = settings.interval("log.dataset_every");
  detail_every = settings.interval("log.detail_every");
  perf_every = settings.interval("log.perf_every");
  log_comm_every = settings.interval("comm.metrics_every");
  gpu_every = settings.interval("log.gpu_every");
}

bool does_the_same(const StepSettings& some, const StepSettings& others) {
  const auto work = [](const StepSettings& of) {
    return std::tie(of.cuda_graph, of.gradient_checkpointing, of.precision, of.attention, of.clip_norm,
                    of.of_task);
  };
  return work(some) == work(others) && some.optimizer == others.optimizer;
}

}  // namespace footplate
