#include "runtime/schema/rows.h"
#include "runtime/schema/settings_groups.h"

namespace footplate {
namespace {

std::vector<SettingRow> checkpoint_rows() {
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
      {.name = "ckpt.retry_s",
       .value = 60.0,
       .unit = "s",
       .range = {.min = 0, .max = 86400},
       .role = Role::operate,
       .aliases = {"ckpt.retry", "save.retry"},
       .help =
           "A checkpoint of ckpt.every that couldn't be written, as on a full disk, is saved again after so "
           "long, and each further time after twice as long, up to an hour. 0 = when ckpt.every is due next. "
           "The last one of a run that is done, or is stopped by an order, is tried again within so long, a "
           "minute at most",
       .example = "ckpt.retry_s = 300"},
      {.name = "ckpt.async",
       .value = true,
       .role = Role::operate,
       .aliases = {"async_save", "ckpt.background", "async_checkpoint"},
       .help =
           "Training waits only while rank 0 copies its state to the host's memory. The copy is written "
           "beside training, one checkpoint at a time, and counts once it is on the disk. It takes as much "
           "memory as a checkpoint has bytes; without room for it training waits, as with false",
       .example = "ckpt.async = false"},
      {.name = "ckpt.parts",
       .value = 0,
       .unit = "ranks",
       .range = {.min = 0, .max = 1000000},
       .role = Role::operate,
       .aliases = {"ckpt.shards", "num_shards"},
       .help = "This many ranks at most write a checkpoint, a part each, at the same time. Any number of "
               "ranks reads it. 0 = as many as have 64 MiB each to write",
       .example = "ckpt.parts = 1"},
      {.name = "ckpt.redundancy",
       .value = "none",
       .choices = {"none", "memory"},
       .applies = Applies::state,
       .aliases = {"redundancy", "ckpt.replicas", "in_memory_checkpoint"},
       .help =
           "With optim.shard, \"memory\" has each rank keep a copy of another rank's share of the "
           "optimizer's "
           "state, on another host where there are several, and update it in every step. A lost rank then "
           "costs no state, and the others go on at their step. Each rank needs the memory of two shares, "
           "and "
           "exchanges one more share of the gradients in each step. If a rank is lost together with the one "
           "that has its copy, the others go back to the newest checkpoint, as with \"none\" after any loss",
       .example = "ckpt.redundancy = \"memory\""},
      {.name = "ckpt.keep",
       .value = 3,
       .unit = "checkpoints",
       .range = {.min = 0, .max = 1000000},
       .role = Role::operate,
       .help = "This many of the newest checkpoints are kept, besides tagged ones and the best "
               "one. 0 keeps all",
       .example = "ckpt.keep = 5"},
      {.name = "ckpt.keep_best",
       .value = 0,
       .unit = "checkpoints",
       .range = {.min = 0, .max = 1000},
       .role = Role::operate,
       .aliases = {"save_top_k", "ckpt.save_best", "save_best", "keep_best"},
       .help = "An evaluation that is the new best saves the parameters that it was of. This many of these "
               "checkpoints are kept. With eval.async rank 0 holds a copy of the optimizer's state in the "
               "host's memory while one is under way. 0 saves none; the best of those that ckpt.every saves "
               "is kept in any case",
       .example = "ckpt.keep_best = 2"},
  };
}

}  // namespace

void add_checkpoint_settings(std::vector<SettingSpec>& table) {
  add(table, checkpoint_rows());
}

}  // namespace footplate
