#include "runtime/schema/rows.h"
#include "runtime/schema/settings_groups.h"

namespace footplate {
namespace {

std::vector<SettingRow> log_rows() {
  return {
      {.name = "log.every",
       .value = 10,
       .unit = "steps",
       .or_time = true,
       .range = {.min = 0, .max = kManySteps},
       .role = Role::operate,
       .aliases = {"log_interval", "log.interval", "logging_steps", "log_every", "train.log_every"},
       .help =
           "Loss, learning rate, epoch and the task's own metrics are logged once in this many steps, or in "
           "this time (\"10s\"): the line that rules and the prompt see. 0 = never",
       .example = "log.every = 50"},
      {.name = "log.datasets",
       .value = true,
       .role = Role::operate,
       .aliases = {"log_dataset_metrics", "log.dataset_metrics", "log.data_sets"},
       .help = "Of a task that trains on several data sets at once, the loss and the metrics of each are "
               "logged, as data/NAME/…",
       .example = "log.datasets = false"},
      {.name = "log.dataset_every",
       .value = 10,
       .unit = "steps",
       .or_time = true,
       .range = {.min = 0, .max = kManySteps},
       .role = Role::operate,
       .aliases = {"dataset_log_every", "log.datasets_every", "log_dataset_every"},
       .help = "The metrics of several data sets are logged once in this many steps, or in this time "
               "(\"10s\"): means over the steps since the last time. 0 = never",
       .example = "log.dataset_every = 50"},
      {.name = "log.detail_every",
       .value = 50,
       .unit = "steps",
       .or_time = true,
       .range = {.min = 0, .max = kManySteps},
       .role = Role::operate,
       .aliases = {"log.details_every", "detail_every", "log.grad_norm_every", "log.memory"},
       .help = "The norm of the gradient, the phases of a step, their ratios and memory are logged once in "
               "this many steps, or in this time (\"10s\"): times are means over the steps since the last "
               "time. 0 = never",
       .example = "log.detail_every = 10"},
      {.name = "log.perf_every",
       .value = 10,
       .unit = "steps",
       .or_time = true,
       .range = {.min = 0, .max = kManySteps},
       .role = Role::operate,
       .aliases = {"log.performance_every", "perf_every", "log.speed_every", "flops_log_every"},
       .help = "The pace (perf/step_ms, perf/tokens_per_s, perf/tflops, perf/mfu) is logged once in this "
               "many steps, or in this time (\"10s\"): means over the steps since the last time. 0 = never",
       .example = "log.perf_every = 50"},
      {.name = "log.gpu_every",
       .value = 20,
       .unit = "steps",
       .or_time = true,
       .range = {.min = 0, .max = kManySteps},
       .role = Role::operate,
       .aliases = {"gpu_every", "gpu_log_every", "log.device_every", "gpu_monitoring_interval"},
       .help = "Utilisation, memory, power and temperature of rank 0's device are logged once in this many "
               "steps, or in this time (\"10s\"), as gpu/util, gpu/memory_mib, gpu/power_w and "
               "gpu/temperature_c. 0 = never",
       .example = "log.gpu_every = \"30s\""},
      {.name = "log.reduced",
       .value = false,
       .role = Role::operate,
       .aliases = {"reduced_logging", "log.reduced_logging", "log.light"},
       .help = "Only the line of log.every is logged, whatever else is set: nothing is read or timed for "
               "details, performance, data sets, collectives, the device and sums of epochs",
       .example = "log.reduced = true"},
      {.name = "log.level",
       .value = "info",
       .choices = {"trace", "debug", "info", "warn", "error"},
       .role = Role::operate,
       .help = "The log files of the ranks keep lines of this level and above",
       .example = "log.level = \"debug\""},
      {.name = "log.flush_every",
       .value = 200,
       .unit = "lines",
       .range = {.min = 1, .max = 1000000},
       .role = Role::operate,
       .help = "The file metrics.jsonl is flushed after this many lines, and at least once a second",
       .example = "log.flush_every = 1"},
  };
}

}  // namespace

void add_log_settings(std::vector<SettingSpec>& table) {
  add(table, log_rows());
}

}  // namespace footplate
