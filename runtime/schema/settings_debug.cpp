#include "runtime/schema/rows.h"
#include "runtime/schema/settings_groups.h"

namespace footplate {
namespace {

std::vector<SettingRow> debug_rows() {
  return {
      {.name = "debug.anomaly",
       .value = false,
       .aliases = {"detect_anomaly", "anomaly", "debug.detect_anomaly", "train.detect_anomaly"},
       .help = "The backward pass fails at the first operation whose gradient has a value that is no number, "
               "and the step's error names that operation. Steps take longer",
       .example = "debug.anomaly = true"},
      {.name = "debug.collectives",
       .value = "off",
       .choices = {"off", "detail"},
       .aliases = {"TORCH_DISTRIBUTED_DEBUG", "torch_distributed_debug", "debug.collective",
                   "debug.distributed"},
       .help =
           "Decides whether the ranks compare every collective. detail: before each one they compare what "
           "they are about to call (step, purpose, kind, size, type), and behind it a hash of the result. "
           "Where they differ the run ends and says which rank called or got what. Collectives run one at a "
           "time, so steps take longer",
       .example = "debug.collectives = \"detail\""},
      {.name = "debug.sync_launches",
       .value = false,
       .variable = "CUDA_LAUNCH_BLOCKING",
       .applies = Applies::restart,
       .aliases = {"cuda_launch_blocking", "debug.launch_blocking", "sync_launches"},
       .help = "A device's kernels run one at a time, and each launch waits for its end: an error "
               "then comes from the operation that made it. Steps take much longer. On the processors it "
               "changes nothing",
       .example = "debug.sync_launches = true"},
  };
}

}  // namespace

void add_debug_settings(std::vector<SettingSpec>& table) {
  add(table, debug_rows());
}

}  // namespace footplate
