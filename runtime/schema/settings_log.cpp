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
       .help = "A line of metrics is logged once in this many steps, or in this time (\"10s\"). 0 = never",
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
      {.name = "log.memory",
       .value = false,
       .role = Role::operate,
       .help = "A line of metrics tells how much memory the process of rank 0 has resident, as "
               "mem/resident_mib",
       .example = "log.memory = true"},
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
