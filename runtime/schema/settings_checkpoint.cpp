#include "runtime/schema/rows.h"
#include "runtime/schema/settings_groups.h"

namespace footplate {
namespace {

std::vector<SettingRow> rows() {
  return {
      {.name = "ckpt.every",
       .value = 500,
       .unit = "steps",
       .or_time = true,
       .range = {.min = 0, .max = kManySteps},
       .role = Role::operate,
       .aliases = {"save.every", "checkpoint.every", "ckpt.interval", "save_every", "save_steps"},
       .help = "A checkpoint is saved once in this many steps, or in this time (\"30m\"). 0 = never",
       .example = "ckpt.every = 1000"},
      {.name = "ckpt.keep",
       .value = 3,
       .unit = "checkpoints",
       .range = {.min = 0, .max = 1000000},
       .role = Role::operate,
       .help = "This many of the newest checkpoints are kept, besides tagged ones and the best "
               "one. 0 keeps all",
       .example = "ckpt.keep = 5"},
  };
}

}  // namespace

void add_checkpoint_settings(std::vector<SettingSpec>& table) {
  add(table, rows());
}

}  // namespace footplate
