#include "runtime/schema/rows.h"
#include "runtime/schema/settings_groups.h"

namespace footplate {
namespace {

std::vector<SettingRow> schedule() {
  return {
      {.name = "sched.kind",
       .value = "cosine",
       .choices = {"cosine", "linear", "constant", "wsd", "step", "restarts"},
       .help =
           "After the warm-up the learning rate goes from sched.base_lr to sched.min_lr in this way. wsd "
           "stays at sched.base_lr and falls in the last sched.decay_steps. step multiplies by sched.gamma "
           "every sched.every steps. restarts begins a cosine every sched.every steps. See also "
           "sched.points",
       .example = "sched.kind = \"linear\""},
      {.name = "sched.base_lr",
       .value = 1e-3,
       .range = {.min = 0, .max = 1000},
       .usual = {.min = 0, .max = 1},
       .aliases = {"lr", "train.lr", "learning_rate", "train.learning_rate", "base_lr", "max_lr",
                   "optim.base_lr"},
       .help = "The learning rate has this value at the end of the warm-up",
       .example = "sched.base_lr = 3e-4"},
      {.name = "sched.warmup_steps",
       .value = 100,
       .unit = "steps",
       .range = {.min = 0, .max = kManySteps},
       .aliases = {"warmup_steps", "warmup", "train.warmup_steps"},
       .help = "The learning rate rises from 0 to sched.base_lr in this many steps",
       .example = "sched.warmup_steps = 200"},
      {.name = "sched.min_lr",
       .value = 0.0,
       .range = {.min = 0, .max = 1000},
       .usual = {.min = 0, .max = 1},
       .aliases = {"min_lr"},
       .help = "The learning rate falls to this value and no further (all kinds but constant)",
       .example = "sched.min_lr = 1e-5"},
      {.name = "sched.decay_steps",
       .value = 0,
       .unit = "steps",
       .range = {.min = 0, .max = kManySteps},
       .aliases = {"decay_steps", "cooldown_steps", "sched.cooldown_steps"},
       .help =
           "With wsd the learning rate falls in this many steps at the end of the run. 0 takes a fifth of "
           "the steps after the warm-up",
       .example = "sched.decay_steps = 500"},
      {.name = "sched.every",
       .value = 0,
       .unit = "steps",
       .range = {.min = 0, .max = kManySteps},
       .aliases = {"step_size", "sched.step_size", "sched.cycle_steps"},
       .help = "With step and restarts this many steps lie between two drops or restarts. 0 takes a third of "
               "the steps after the warm-up",
       .example = "sched.every = 1000"},
      {.name = "sched.gamma",
       .value = 0.1,
       .range = {.min = 0, .max = 1},
       .aliases = {"lr_gamma", "sched.factor"},
       .help = "With step each drop multiplies the learning rate by this",
       .example = "sched.gamma = 0.5"},
      {.name = "sched.points",
       .value = std::vector<double>{},
       .range = {.min = 0, .max = kManySteps},
       .syntax = kSchedulePoints,
       .aliases = {"lr_points", "sched.table"},
       .help = "The learning rate goes straight from point to point, each a step and its rate, and "
               "sched.kind and "
               "the warm-up don't count. {} leaves it to sched.kind. It is read back as one list",
       .example = "sched.points = { {1, 1e-4}, {500, 1e-3}, {2000, 0} }"},
  };
}

std::vector<SettingRow> optimizer() {
  return {
      {.name = "optim.kind",
       .value = "adamw",
       .choices = {"adamw", "sgd", "lion", "muon"},
       .applies = Applies::fixed,
       .aliases = {"optimizer", "train.optimizer"},
       .help =
           "This optimizer updates the parameters. sgd has momentum. muon makes the momentum of a matrix "
           "orthogonal, and leaves vectors and embeddings to AdamW; the learning rate that AdamW had fits "
           "it, and lion wants a third to a tenth of that",
       .example = "optim.kind = \"muon\""},
      {.name = "optim.shard",
       .value = 0,
       .range = {.min = 0, .max = 2},
       .applies = Applies::state,
       .aliases = {"zero_stage", "zero", "optim.zero"},
       .help = "With 1 each rank keeps its share of the optimizer's state and updates that share of the "
               "parameters (ZeRO stage 1): of N ranks each needs 1/N of that memory. With 2 it also keeps "
               "only its share of the gradients (stage 2). They are reduced in each backward pass, so a "
               "smaller train.micro_batch makes more traffic, and train.cuda_graph changes nothing. All "
               "ranks write checkpoints, and any number reads "
               "them. If a rank is lost, the others go back to the newest checkpoint; with "
               "ckpt.redundancy = \"memory\" they go on at their step. Changed live, the ranks divide the "
               "state at the agreed step. Not with muon",
       .example = "optim.shard = 1"},
      {.name = "optim.lr",
       .value = 0.0,
       .range = {.min = 0},
       .role = Role::view,
       .knobs = {"sched.base_lr", "optim.lr_scale"},
       .metric = "train/lr",
       .help = "The current step has this learning rate. It is computed from the schedule",
       .example = "return optim.lr"},
      {.name = "optim.lr_scale",
       .value = 1.0,
       .range = {.min = 0, .max = 1000000},
       .usual = {.min = 0, .max = 10},
       .aliases = {"lr", "train.lr", "lr_scale"},
       .help = "The scheduled learning rate is multiplied by this factor",
       .example = "optim.lr_scale = 0.5"},
      {.name = "optim.weight_decay",
       .value = 0.1,
       .range = {.min = 0, .max = 1000},
       .usual = {.min = 0, .max = 1},
       .aliases = {"weight_decay", "train.weight_decay", "wd"},
       .help =
           "Matrices decay by this much, apart from the gradient (decoupled weight decay). sgd adds it to "
           "the gradient",
       .example = "optim.weight_decay = 0.05"},
      {.name = "optim.betas",
       .value = std::vector<double>{0.9, 0.99},
       .range = {.min = 0, .max = 0.999999},
       .aliases = {"betas", "beta1", "beta2"},
       .help = "AdamW's first and second moment decay by these factors. lion weighs its running mean by the "
               "first one for the update and by the second one for the mean",
       .example = "optim.betas = {0.9, 0.95}"},
      {.name = "optim.eps",
       .value = 1e-8,
       .range = {.min = 0, .max = 1, .exclusive_min = true},
       .aliases = {"eps", "epsilon"},
       .help = "AdamW adds this to its denominator, against division by zero",
       .example = "optim.eps = 1e-8"},
      {.name = "optim.momentum",
       .value = 0.9,
       .range = {.min = 0, .max = 0.999999},
       .aliases = {"momentum"},
       .help = "The running mean of gradients decays by this factor, with sgd and muon",
       .example = "optim.momentum = 0.95"},
      {.name = "optim.nesterov",
       .value = true,
       .aliases = {"nesterov"},
       .help = "The update looks one step of momentum ahead (Nesterov), with sgd and muon",
       .example = "optim.nesterov = false"},
  };
}

}  // namespace

void add_optimizer_settings(std::vector<SettingSpec>& table) {
  add(table, schedule());
  add(table, optimizer());
}

}  // namespace footplate
