#include "runtime/schema/settings_groups.h"

namespace footplate {
namespace {

constexpr const char* kBatch =
    "isn't set here: train.batch_size is over all ranks, ranks times as many; train.micro_batch is what goes "
    "through "
    "the model at once";

}  // namespace

std::vector<Hint> hints_of_others() {
  return {
      {"per_device_train_batch_size", kBatch},
      {"per_gpu_batch_size", kBatch},
      {"gradient_accumulation_steps",
       "isn't set here: it follows from train.batch_size, the number of ranks and train.micro_batch"},
      {"accumulate_grad_batches",
       "isn't set here: it follows from train.batch_size, the number of ranks and train.micro_batch"},
      {"multi_length_training",
       "is a matter of the task: one with a data set for each length trains on all of them at once, and "
       "data.share.NAME says how much of each"},
      {"grad_norm",
       "is a metric, train/grad_norm: it is logged once in log.detail_every steps, train.clip_norm bounds "
       "it"},
      {"persistent_workers", "isn't set here: the threads of data.workers live as long as the run"},
      {"data.persistent_workers", "isn't set here: the threads of data.workers live as long as the run"},
      {"dataloader_persistent_workers",
       "isn't set here: the threads of data.workers live as long as the run"},
      {"fp16", "isn't there; train.precision = \"bf16\" is, which needs no scaling of the loss"},
      {"output_dir",
       "isn't set here: FOOTPLATE_RUNS in the environment names the folder of all runs, and --name a run"},
      {"report_to", "isn't set here: footplate export RUN --to tensorboard|csv|prometheus --follow"},
  };
}

}  // namespace footplate
