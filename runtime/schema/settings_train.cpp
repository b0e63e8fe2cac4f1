#include "runtime/schema/rows.h"
#include "runtime/schema/settings_groups.h"

namespace footplate {
namespace {

std::vector<SettingRow> batches() {
  return {
      {.name = "train.steps",
       .value = 1000,
       .unit = "steps",
       .range = {.min = 1, .max = kManySteps},
       .aliases = {"max_steps", "train.max_steps", "max_iters", "total_steps"},
       .help = "The run has this many steps. The learning rate's schedule ends there, too",
       .example = "train.steps = 4000"},
      {.name = "train.epochs",
       .value = 0,
       .unit = "epochs",
       .range = {.min = 0, .max = 1e6},
       .aliases = {"num_epochs", "epochs", "num_train_epochs", "TRAIN_EPOCHS", "max_epochs",
                   "train.num_epochs"},
       .help =
           "The run ends after this many epochs: train.steps follows from it, from the size of the data and "
           "from train.batch_size, also where these change live. Of several data sets it is the mean, as "
           "train/epoch in the metrics. 0 = after train.steps. Where one of the two is set live, the other "
           "one gives way",
       .example = "train.epochs = 3"},
      {.name = "train.batch_size",
       .value = 32,
       .unit = "sequences",
       .range = {.min = 1, .max = 1e+07},
       .aliases = {"batch_size", "global_batch_size"},
       .help = "A step trains on this many sequences, over all ranks. Where it changes, the data goes on "
               "from where it is; schedules count steps, and the learning rate stays as it is",
       .example = "train.batch_size = 64"},
      {.name = "train.micro_batch",
       .value = 0,
       .unit = "sequences",
       .range = {.min = 0, .max = 1e+07},
       .aliases = {"micro_batch", "micro_batch_size"},
       .help = "This many sequences of a rank go through the model at once; their gradients are "
               "accumulated. 0 takes the rank's whole slice at once",
       .example = "train.micro_batch = 8"},
      {.name = "train.clip_norm",
       .value = 1.0,
       .range = {.min = 0, .max = 1e9},
       .usual = {.min = 0, .max = 100},
       .aliases = {"clip_norm", "grad_clip", "max_grad_norm"},
       .help = "Gradients are scaled down to this global norm. 0 switches that off",
       .example = "train.clip_norm = 0.5"},
  };
}

std::vector<SettingRow> computing() {
  return {
      {.name = "train.precision",
       .value = "fp32",
       .choices = {"fp32", "bf16"},
       .aliases = {"precision", "dtype", "mixed_precision", "amp", "bf16", "train.dtype"},
       .help =
           "Matrix products and attention are computed in this type. bf16 halves their memory "
           "and is several times as fast on a device that has it, and on processors with AVX-512 BF16 "
           "or AMX; other processors keep fp32, and say so. Gradients, loss and optimizer stay fp32, and so "
           "do parameters by default (train.param_dtype)",
       .example = "train.precision = \"bf16\""},
      {.name = "train.param_dtype",
       .value = "fp32",
       .choices = {"fp32", "bf16"},
       .applies = Applies::fixed,
       .aliases = {"param_dtype", "params_dtype", "model_dtype", "train.params_dtype"},
       .help = "The model's matrices are kept in this type; tables, vectors and gradients stay fp32. With "
               "bf16 the "
               "optimizer has fp32 master weights, which optim.shard shares among the ranks: a parameter "
               "takes 2 bytes on each rank instead of 4, and no step casts it. bf16 needs train.precision = "
               "\"bf16\", and the model begins with rounded values",
       .example = "train.param_dtype = \"bf16\""},
      {.name = "train.attention",
       .value = "auto",
       .choices = {"auto", "flash", "efficient", "cudnn", "math"},
       .aliases = {"attention", "sdpa", "attn_implementation"},
       .help = "This kernel of LibTorch computes attention. auto takes the first of flash, "
               "efficient, cudnn and math that can. A kernel that can't do what the model asks "
               "leaves it to math. The log says which one runs",
       .example = "train.attention = \"efficient\""},
      {.name = "train.gradient_checkpointing",
       .value = false,
       .aliases = {"gradient_checkpointing", "activation_checkpointing", "recompute", "train.recompute",
                   "train.activation_checkpointing", "checkpoint_activations"},
       .help = "The backward pass computes the model's blocks again instead of keeping what they "
               "computed: less memory, more time, the same result to the last bit",
       .example = "train.gradient_checkpointing = true"},
      {.name = "train.cuda_graph",
       .value = false,
       .aliases = {"cuda_graph", "cuda_graphs", "cudagraph", "train.cuda_graphs"},
       .help = "A step's forward and backward pass and its update are recorded, and each is "
               "started as one. That saves time where a step is short for a device. Gradients are "
               "reduced after the backward pass",
       .example = "train.cuda_graph = true"},
      {.name = "train.empty_cache_every",
       .value = 100,
       .unit = "steps",
       .range = {.min = 0, .max = kManySteps},
       .role = Role::operate,
       .aliases = {"empty_cache_every", "empty_cache"},
       .help = "Once in this many steps the device's allocator gives back the memory that it keeps "
               "without using it. That costs a moment and avoids fragmentation. 0 = never",
       .example = "train.empty_cache_every = 1000"},
  };
}

}  // namespace

void add_train_settings(std::vector<SettingSpec>& table) {
  add(table, batches());
  add(table, computing());
}

}  // namespace footplate
