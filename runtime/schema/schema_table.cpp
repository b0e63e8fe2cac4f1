#include "runtime/schema/schema_table.h"

#include "runtime/schema/schema_nccl.h"

namespace footplate {
namespace {

using Strings = std::vector<std::string>;

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kManySteps = 1e9;  ///< more steps than any run takes

Range at_least(double min) {
  return {min, kInfinity, false};
}
Range between(double min, double max) {
  return {min, max, false};
}
Range above_to(double min, double max) {
  return {min, max, true};
}

/// Most settings: run-wide, set by an admin, in force at the agreed step.
SettingSpec live(std::string name, Type type, Value value, std::string unit, Range range, std::string help,
                 std::string example) {
  SettingSpec spec;
  spec.name = std::move(name);
  spec.type = type;
  spec.default_value = std::move(value);
  spec.unit = std::move(unit);
  spec.range = range;
  spec.help = std::move(help);
  spec.example = std::move(example);
  return spec;
}

SettingSpec fixed(SettingSpec spec) {
  spec.applies = Applies::fixed;
  return spec;
}

SettingSpec also_called(SettingSpec spec, Strings aliases) {
  spec.aliases = std::move(aliases);
  return spec;
}

SettingSpec usually(SettingSpec spec, Range usual) {
  spec.usual = usual;
  return spec;
}

SettingSpec for_role(SettingSpec spec, Role role) {
  spec.role = role;
  return spec;
}

SettingSpec choice(std::string name, std::string value, Strings choices, std::string help,
                   std::string example) {
  SettingSpec spec =
      live(std::move(name), Type::choice, std::move(value), "", {}, std::move(help), std::move(example));
  spec.choices = std::move(choices);
  return spec;
}

SettingSpec integer(std::string name, std::int64_t value, std::string unit, Range range, std::string help,
                    std::string example) {
  return live(std::move(name), Type::integer, value, std::move(unit), range, std::move(help),
              std::move(example));
}

SettingSpec number(std::string name, double value, std::string unit, Range range, std::string help,
                   std::string example) {
  return live(std::move(name), Type::number, value, std::move(unit), range, std::move(help),
              std::move(example));
}

/// A frequency: in steps, 0 = never.
SettingSpec every(std::string name, std::int64_t value, std::string help, std::string example) {
  return for_role(integer(std::move(name), value, "steps", between(0, kManySteps),
                          std::move(help) + "; 0 = never", std::move(example)),
                  Role::operate);
}

/// A deadline, in seconds; the longest is a day.
SettingSpec deadline(std::string name, double value, std::string help, std::string example) {
  return for_role(
      number(std::move(name), value, "s", above_to(0, 86400), std::move(help), std::move(example)),
      Role::operate);
}

void add_run(std::vector<SettingSpec>& table) {
  table.push_back(
      fixed(choice("run.task", "text", {"text", "synthetic"},
                   "What is trained: a language model on text, or a synthetic task with a given step time",
                   "run.task = \"text\"")));
  table.push_back(fixed(integer("run.seed", 1, "", between(0, 4294967295.0),
                                "Seed of everything random: initial parameters, batches", "run.seed = 7")));
  table.push_back(
      fixed(choice("run.device", "auto", {"auto", "cpu", "cuda"},
                   "Where training runs; auto takes a device where there is one", "run.device = \"cpu\"")));
  table.push_back(fixed(
      also_called(live("run.deterministic", Type::boolean, false, "", {},
                       "On a device, too, the same run has the same bits: only kernels that add up in a "
                       "fixed order, which "
                       "may be slower, and an error where an operation has none. On processors it always has",
                       "run.deterministic = true"),
                  {"deterministic"})));
  table.push_back(fixed(also_called(
      integer("run.threads", 0, "threads", between(0, 1024),
              "Threads of each rank for computing; 0 = cores / ranks on this host", "run.threads = 1"),
      {"threads", "num_threads", "omp_num_threads"})));
  table.push_back(also_called(
      number(
          "run.peak_tflops", 0.0, "TFLOP/s", between(0, 1e6),
          "What a rank computes at most, of which perf/mfu is a part; 0 = by the device's name, where that "
          "is known",
          "run.peak_tflops = 989"),
      {"peak_tflops", "peak_flops", "run.peak_flops"}));
  table.push_back(also_called(number("run.time_limit", 0.0, "s", at_least(0),
                                     "Save and stop (exit code 75) this long after footplate run began; 0 = "
                                     "none. In a Slurm job by default two minutes before its end",
                                     "run.time_limit = \"8h\""),
                              {"time_limit", "run.max_time"}));
}

void add_model(std::vector<SettingSpec>& table) {
  table.push_back(fixed(
      also_called(integer("model.layers", 4, "", between(1, 1024), "Transformer blocks", "model.layers = 6"),
                  {"n_layer", "num_layers", "model.depth"})));
  table.push_back(
      fixed(also_called(integer("model.heads", 4, "", between(1, 1024),
                                "Attention heads of each block; divides model.width", "model.heads = 8"),
                        {"n_head", "num_heads"})));
  table.push_back(
      fixed(also_called(integer("model.width", 128, "", between(1, 65536),
                                "Width of the residual stream (embedding dimension)", "model.width = 256"),
                        {"n_embd", "hidden_size", "d_model", "model.dim"})));
  table.push_back(
      fixed(also_called(integer("model.context", 128, "tokens", between(1, 1048576),
                                "Length of a training sequence; a token is a byte", "model.context = 256"),
                        {"block_size", "seq_len", "model.seq_len", "context_length"})));
  table.push_back(fixed(also_called(
      integer("model.vocabulary", 256, "tokens", between(256, 1e6),
              "Width of the output. Bytes need 256; more makes a model as large as one over words",
              "model.vocabulary = 50257"),
      {"vocab_size", "n_vocab", "model.vocab_size"})));
  table.push_back(
      fixed(number("model.step_ms", 10.0, "ms", between(0, 600000),
                   "Synthetic task: how long the computing of a step takes", "model.step_ms = 50")));
  table.push_back(fixed(integer("model.elements", 1000, "", between(1, 2e9),
                                "Synthetic task: number of parameters", "model.elements = 100000")));
}

void add_train(std::vector<SettingSpec>& table) {
  table.push_back(also_called(integer("train.steps", 1000, "steps", between(1, kManySteps),
                                      "Length of the run; the schedule ends there too", "train.steps = 4000"),
                              {"max_steps", "train.max_steps", "max_iters", "total_steps"}));
  table.push_back(
      fixed(also_called(integer("train.batch_size", 32, "sequences", between(1, 1e7),
                                "Global batch of one step, over all ranks", "train.batch_size = 64"),
                        {"batch_size", "global_batch_size"})));
  table.push_back(
      also_called(integer("train.micro_batch", 0, "sequences", between(0, 1e7),
                          "Sequences of a rank that go through the model at once, the rest is accumulated; "
                          "0 = the rank's whole slice",
                          "train.micro_batch = 8"),
                  {"micro_batch", "micro_batch_size"}));
  table.push_back(also_called(
      usually(number("train.clip_norm", 1.0, "", between(0, 1e9),
                     "Gradients are scaled down to this global norm; 0 = off", "train.clip_norm = 0.5"),
              between(0, 100)),
      {"clip_norm", "grad_clip", "max_grad_norm"}));
}

void add_computing(std::vector<SettingSpec>& table) {
  table.push_back(also_called(
      choice("train.precision", "fp32", {"fp32", "bf16"},
             "What matrix products and attention are computed in. bf16 halves their memory and is several "
             "times as fast on a device that has it; parameters, gradients, loss and optimizer stay fp32",
             "train.precision = \"bf16\""),
      {"precision", "dtype", "mixed_precision", "amp", "train.dtype"}));
  table.push_back(also_called(
      choice("train.attention", "auto", {"auto", "flash", "efficient", "cudnn", "math"},
             "LibTorch's kernel for attention; auto: the first of flash, efficient, cudnn and math that can. "
             "One that can't do what the model asks leaves it to math; the log says which one runs",
             "train.attention = \"efficient\""),
      {"attention", "sdpa", "attn_implementation"}));
  table.push_back(also_called(
      live("train.gradient_checkpointing", Type::boolean, false, "", {},
           "Backward computes the model's blocks once more instead of keeping what they have computed: less "
           "memory, more time, the same result to the last bit",
           "train.gradient_checkpointing = true"),
      {"gradient_checkpointing", "activation_checkpointing", "recompute", "train.recompute",
       "train.activation_checkpointing", "checkpoint_activations"}));
  table.push_back(
      also_called(live("train.cuda_graph", Type::boolean, false, "", {},
                       "Record a step's forward and backward pass and its update, and start each as one: "
                       "saves time where a step is short for a device. Gradients are reduced after it",
                       "train.cuda_graph = true"),
                  {"cuda_graph", "cuda_graphs", "cudagraph", "train.cuda_graphs"}));
  table.push_back(
      also_called(every("train.empty_cache_every", 100,
                        "Give back memory that the device's allocator keeps without using it this often: "
                        "costs a moment, keeps memory from falling to pieces",
                        "train.empty_cache_every = 1000"),
                  {"empty_cache_every", "empty_cache"}));
}

void add_optimizer(std::vector<SettingSpec>& table) {
  table.push_back(choice("sched.kind", "cosine", {"cosine", "linear", "constant"},
                         "How the learning rate goes from sched.base_lr to sched.min_lr after the warm-up",
                         "sched.kind = \"linear\""));
  table.push_back(also_called(
      usually(number("sched.base_lr", 1e-3, "", between(0, 1000), "Learning rate at the end of the warm-up",
                     "sched.base_lr = 3e-4"),
              between(0, 1)),
      {"lr", "train.lr", "learning_rate", "train.learning_rate", "base_lr", "max_lr", "optim.base_lr"}));
  table.push_back(also_called(
      integer("sched.warmup_steps", 100, "steps", between(0, kManySteps),
              "Steps in which the learning rate rises from 0 to sched.base_lr", "sched.warmup_steps = 200"),
      {"warmup_steps", "warmup", "train.warmup_steps"}));
  table.push_back(also_called(
      usually(number("sched.min_lr", 0.0, "", between(0, 1000),
                     "Learning rate at the end of the run (cosine and linear)", "sched.min_lr = 1e-5"),
              between(0, 1)),
      {"min_lr"}));
  table.push_back(fixed(choice("optim.kind", "adamw", {"adamw"}, "Optimizer", "optim.kind = \"adamw\"")));
  SettingSpec rate =
      number("optim.lr", 0.0, "", at_least(0),
             "Learning rate of the current step, computed from the schedule", "return optim.lr");
  rate.knobs = {"sched.base_lr", "optim.lr_scale"};
  rate.role = Role::view;
  table.push_back(rate);
  table.push_back(also_called(usually(number("optim.lr_scale", 1.0, "", between(0, 1e6),
                                             "Factor on the scheduled learning rate", "optim.lr_scale = 0.5"),
                                      between(0, 10)),
                              {"lr", "train.lr", "lr_scale"}));
  table.push_back(
      also_called(usually(number("optim.weight_decay", 0.1, "", between(0, 1000),
                                 "Decoupled weight decay, on matrices only", "optim.weight_decay = 0.05"),
                          between(0, 1)),
                  {"weight_decay", "train.weight_decay", "wd"}));
  table.push_back(
      also_called(live("optim.betas", Type::numbers, std::vector<double>{0.9, 0.99}, "", between(0, 0.999999),
                       "Decay of AdamW's first and second moment", "optim.betas = {0.9, 0.95}"),
                  {"betas", "beta1", "beta2"}));
  table.push_back(also_called(number("optim.eps", 1e-8, "", above_to(0, 1),
                                     "AdamW's guard against division by zero", "optim.eps = 1e-8"),
                              {"eps", "epsilon"}));
}

void add_data_and_evaluation(std::vector<SettingSpec>& table) {
  table.push_back(fixed(also_called(
      live("data.corpus", Type::string, std::string("kjv"), "", {},
           "Text to train on: kjv (the King James Bible), python (the standard library's sources), "
           "or the path of a file or folder; its last 10 % are held out",
           "data.corpus = \"kjv\""),
      {"corpus", "dataset", "data.dataset", "data.path"})));
  table.push_back(also_called(
      live("data.offset", Type::integer, std::int64_t{0}, "sequences", between(0, 1e12),
           "So many sequences of the training data are passed over: each step takes its batch from so much "
           "further on. Raised by n * train.batch_size it leaves out what the next n steps would have had",
           "data.offset = data.offset + 30 * train.batch_size"),
      {"offset", "data.skip", "skip_batches", "data.skip_batches", "data.skip_samples"}));
  table.push_back(
      also_called(every("eval.every", 200, "Evaluate on the held-out text this often", "eval.every = 500"),
                  {"eval_interval", "eval.interval", "eval_every"}));
  table.push_back(
      for_role(integer("eval.batches", 0, "batches", between(0, 1e9),
                       "Batches of one evaluation, over all ranks; 0 = everything that is held out",
                       "eval.batches = 20"),
               Role::operate));
  table.push_back(for_role(integer("eval.batch_size", 32, "sequences", between(1, 1e6),
                                   "Sequences of one evaluation batch", "eval.batch_size = 16"),
                           Role::operate));
  table.push_back(for_role(
      live("eval.at_end", Type::boolean, true, "", {},
           "Evaluate once more when the run is done, on everything that is held out", "eval.at_end = false"),
      Role::operate));
  table.push_back(
      for_role(choice("eval.mode", "all", {"all", "one", "off"},
                      "Who evaluates: all ranks a slice each, rank 0 alone, nobody", "eval.mode = \"one\""),
               Role::operate));
  table.push_back(for_role(live("eval.async", Type::boolean, false, "", {},
                                "Evaluate beside training, on a copy of the parameters: steps go on "
                                "meanwhile, a second model is in "
                                "memory. One at a time; what is due during one is left out. eval.now() and "
                                "the last evaluation wait",
                                "eval.async = true"),
                           Role::operate));
  table.push_back(
      deadline("eval.meet_timeout_s", 300,
               "How long ranks that have evaluated their part wait for the last one; then all skip "
               "this evaluation and train on. With eval.mode \"one\" the others wait at least "
               "comm.eval_timeout_s",
               "eval.meet_timeout_s = 60"));
  table.push_back(
      also_called(every("ckpt.every", 500, "Save a checkpoint this often", "ckpt.every = 1000"),
                  {"save.every", "checkpoint.every", "ckpt.interval", "save_every", "save_steps"}));
  table.push_back(for_role(
      integer("ckpt.keep", 3, "checkpoints", between(0, 1e6),
              "How many of the newest checkpoints are kept besides tagged ones and the best; 0 = all",
              "ckpt.keep = 5"),
      Role::operate));
}

void add_deadlines(std::vector<SettingSpec>& table) {
  table.push_back(also_called(
      deadline(
          "comm.timeout_s", 600,
          "A collective of a training step that takes longer is looked into: who is missing, who is slow. "
          "An operation has the longer one of its phase's and its size's deadline; comm.on_timeout says what "
          "follows",
          "comm.timeout_s = 1200"),
      {"comm.timeout", "timeout", "nccl_timeout"}));
  table.push_back(also_called(
      deadline("comm.eval_timeout_s", 1800, "The same, of an evaluation", "comm.eval_timeout_s = \"1h\""),
      {"eval_timeout", "eval.timeout"}));
  table.push_back(deadline("comm.small_timeout_s", 300,
                           "The same, of any operation on less than 10 million elements",
                           "comm.small_timeout_s = 60"));
  table.push_back(deadline("comm.medium_timeout_s", 900,
                           "The same, of any operation on 10 to 100 million elements",
                           "comm.medium_timeout_s = 600"));
  table.push_back(deadline("comm.large_timeout_s", 1800, "The same, of any operation on more elements",
                           "comm.large_timeout_s = 3600"));
  table.push_back(choice(
      "comm.auto", "advise", {"off", "advise", "apply"},
      "What comes of collectives that keep going past a deadline and end after all: advise says once what to "
      "set (a longer deadline, smaller pieces); apply sets it, as an order of footplate's own, up to ten "
      "times "
      "what was set",
      "comm.auto = \"apply\""));
}

void add_recovery(std::vector<SettingSpec>& table) {
  table.push_back(choice("comm.on_timeout", "rebuild", {"wait", "rebuild", "stop"},
                         "What follows where a collective of a training step goes past its deadline and all "
                         "ranks answer: rebuild, all communicators are made anew and the step is done again, "
                         "up to three times, each time with twice the patience; wait, it is named and waited "
                         "for; stop, the run ends resumable (exit code 75). For evaluations: eval.on_timeout",
                         "comm.on_timeout = \"wait\""));
  table.push_back(
      also_called(choice("eval.on_timeout", "skip", {"wait", "skip", "stop"},
                         "The same of an evaluation: skip, it is recorded as failed and training goes on",
                         "eval.on_timeout = \"wait\""),
                  {"comm.eval_on_timeout"}));
  table.push_back(choice("comm.on_loss", "rebuild", {"rebuild", "stop"},
                         "What follows when a rank dies: rebuild, the others go on in place with fewer "
                         "ranks; stop, the run ends "
                         "resumable (exit code 75, --restarts)",
                         "comm.on_loss = \"stop\""));
  table.push_back(number("comm.hard_limit_s", 1800.0, "s", between(0, 604800),
                         "A rank that was silent for longer, or that kept the others waiting in a collective "
                         "for longer, is killed; "
                         "comm.on_loss says what follows. Not while it saves. 0: never",
                         "comm.hard_limit_s = 600"));
  table.push_back(
      live("comm.replace", Type::boolean, false, "", {},
           "After a rank was lost, start another process in its place beside training, and let it "
           "in at an agreed step once it is ready",
           "comm.replace = true"));
}

void add_machinery(std::vector<SettingSpec>& table) {
  table.push_back(
      fixed(number("comm.init_timeout_s", 300.0, "s", between(1, 86400),
                   "How long a start waits for all ranks to meet; one that doesn't arrive is named, "
                   "and the run fails",
                   "comm.init_timeout_s = 60")));
  table.push_back(number("comm.bucket_mb", 4.0, "MiB", above_to(0, 4096),
                         "Gradients are reduced in buckets of about this size", "comm.bucket_mb = 8"));
  table.push_back(also_called(
      integer(
          "comm.chunk_elements", 1000000, "elements", between(0, 2147483647.0),
          "Reductions and broadcasts run in pieces of so many elements, and need as much extra memory; 0 "
          "goes "
          "by size: one piece below 100 million elements, 2 to 5 up to 500 million, 10 to 20 beyond, as NCCL "
          "does until it is set. "
          "With more than two ranks the last bits of a sum may depend on it",
          "comm.chunk_elements = 4000000"),
      {"chunk_elements", "comm.chunk_size", "chunk_size"}));
  table.push_back(
      choice("comm.overlap", "auto", {"auto", "on", "off"},
             "Reduce buckets while backward still runs; auto: only with a spare core for each rank",
             "comm.overlap = \"off\""));
  add_deadlines(table);
  table.push_back(
      also_called(every("guard.check_every", 100, "Compare a hash of the state across ranks this often",
                        "guard.check_every = 50"),
                  {"guard.every", "check_every"}));
  table.push_back(choice("guard.on_mismatch", "warn", {"warn", "repair", "stop"},
                         "What follows where that hash differs: warn; repair, the state of a rank of the "
                         "majority is given to all; "
                         "stop, the run ends resumable and without a save. Two ranks have no majority: warn",
                         "guard.on_mismatch = \"repair\""));
  table.push_back(
      choice("guard.nonfinite", "skip", {"skip", "pause", "stop"},
             "What comes of a step whose gradients or loss aren't finite: nothing is written and training "
             "goes on, or pauses; or the run fails, as it does after three of them in a row",
             "guard.nonfinite = \"pause\""));
  table.push_back(
      also_called(every("log.every", 10, "Write a line of metrics this often", "log.every = 50"),
                  {"log_interval", "log.interval", "logging_steps", "log_every", "train.log_every"}));
  table.push_back(for_role(choice("log.level", "info", {"trace", "debug", "info", "warn", "error"},
                                  "What the log files of the ranks keep", "log.level = \"debug\""),
                           Role::operate));
  table.push_back(for_role(integer("log.flush_every", 200, "lines", between(1, 1e6),
                                   "metrics.jsonl is flushed after so many lines, and at least once a second",
                                   "log.flush_every = 1"),
                           Role::operate));
}

ActionSpec action(std::string name, Role role, std::string help, std::string example, std::string result) {
  ActionSpec spec;
  spec.name = std::move(name);
  spec.role = role;
  spec.help = std::move(help);
  spec.example = std::move(example);
  spec.result = std::move(result);
  return spec;
}

ParamSpec param(std::string name, Type type, std::optional<Value> value, std::string help, Range range = {},
                std::string unit = "") {
  return {std::move(name), type, std::move(unit), range, {}, std::move(value), std::move(help)};
}

std::vector<ActionSpec> all_actions() {
  std::vector<ActionSpec> actions;
  actions.push_back(action("eval.now", Role::operate, "Evaluate on the held-out text at the agreed step",
                           "return eval.now{ batches = 50 }:wait().loss",
                           "loss, tokens, batches, seconds, step, best"));
  actions.back().params = {
      param("batches", Type::integer, std::nullopt,
            "how many batches, over all ranks; 0: all of the held-out text; left out: eval.batches",
            between(0, 1e9), "batches")};
  actions.push_back(action("ckpt.save", Role::operate, "Save a checkpoint at the agreed step",
                           "ckpt.save{ tag = \"before-spike\" }:wait()", "path, step, seconds, bytes"));
  actions.back().params = {param("tag", Type::string, std::nullopt,
                                 "a name of its own; tagged checkpoints are kept until deleted by hand")};
  actions.push_back(action(
      "ckpt.load", Role::admin,
      "Go back to a checkpoint of this run at the agreed step: the ranks end, and are started again from "
      "there in a branch of their own; what wasn't saved since is gone",
      "ckpt.load{ ref = \"-500\", set = { optim = { lr_scale = 0.5 } } }", "path, step, branch, settings"));
  actions.back().dangerous = true;
  actions.back().params = {
      param(
          "ref", Type::string, Value(std::string("latest")),
          "a step, one relative to now (-500), a tag, \"best\", \"latest\", or the checkpoint's path; a step "
          "takes the nearest earlier checkpoint"),
      {"settings",
       Type::choice,
       "",
       {},
       {"restore", "keep"},
       Value(std::string("restore")),
       "settings as they were there, or with all that was changed live until now"},
      param(
          "set", Type::string, std::nullopt,
          "settings that count from there on, whatever it has: a table, as JSON in an order of the protocol"),
      param("skip_steps", Type::integer, std::nullopt,
            "leave out the data of so many steps from there on (data.offset); skip = { steps = 30 } in Lua",
            between(0, 1e9), "steps"),
      param("branch", Type::string, std::nullopt, "a name for what comes from there on; left out: from-STEP"),
      param("reason", Type::string, std::nullopt, "kept in result-K.json")};
  actions.push_back(
      action("comm.admit", Role::admin,
             "Let the process that comm.replace has started join; the run gives this order itself",
             "comm.admit{}", "the step"));
  actions.back().params = {
      param("start", Type::string, Value(std::string()), "when the run was started that it is for")};
  actions.push_back(action("guard.repair", Role::admin,
                           "Give one rank's parameters and optimizer state to all, at the agreed step",
                           "guard.repair{ source = 0 }", "step, source"));
  actions.back().dangerous = true;
  actions.back().params = {param("source", Type::integer, Value(std::int64_t{0}),
                                 "the rank whose state counts", between(0, 1e6), "rank")};
  actions.push_back(action("nccl.rebuild", Role::admin,
                           "Make NCCL's communicators anew at the agreed step, as they are", "nccl.rebuild()",
                           "step, seconds"));
  actions.push_back(action(
      "nccl.measure", Role::operate,
      "Measure what NCCL does for some steps: algorithm, protocol, channels and time of each size; the "
      "event nccl has what was found",
      "nccl.measure{ steps = 50 }", "first, last, steps"));
  actions.back().params = {
      param("steps", Type::integer, Value(std::int64_t{50}), "how many steps", between(1, 1e6), "steps")};
  actions.push_back(action("nccl.profile", Role::operate, "What the last nccl.measure has found",
                           "return nccl.profile():wait().step_ms", "step, steps, step_ms, collectives"));
  actions.push_back(action("run.note", Role::operate,
                           "A line for the journal, the run's report and everybody who is attached; a trial "
                           "tells so what it found",
                           "run.note(\"new data from here on\")", "the step"));
  actions.back().params = {param("text", Type::string, Value(std::string()), "the line")};
  actions.push_back(action("run.pause", Role::operate,
                           "Hold all ranks at the agreed step; orders still apply",
                           "run.pause(\"looking at the spike\")", "the step"));
  actions.back().params = {param("reason", Type::string, std::nullopt, "shown to everyone")};
  actions.push_back(action("run.resume", Role::operate, "Go on after run.pause", "run.resume()", "the step"));
  actions.push_back(action("run.stop", Role::admin, "End the run at the agreed step, after a checkpoint",
                           "run.stop()", "the step"));
  actions.back().dangerous = true;
  actions.back().params = {param("save", Type::boolean, Value(true), "write a checkpoint first"),
                           param("resumable", Type::boolean, Value(false), "exit code 75 instead of 0"),
                           param("reason", Type::string, std::nullopt, "kept in result.json"),
                           param("error", Type::string, std::nullopt,
                                 "what went wrong in a script: exit code 3, and this as the reason")};
  actions.push_back(action(
      "run.restart", Role::admin,
      "End the run at the agreed step, after a checkpoint, and start it again from there: with what is "
      "kept for the next start (settings(\"pending\")), and not counted by --restarts",
      "run.restart()", "the step"));
  actions.back().dangerous = true;
  actions.back().params = {param("reason", Type::string, std::nullopt, "kept in result-K.json")};
  actions.push_back(action("run.store", Role::operate, "Keep data with the run; store.x = … is the usual way",
                           "run.store{ name = \"best\", value = \"1.25\" }", "the step"));
  actions.back().params = {param("name", Type::string, std::nullopt, "where in store"),
                           param("value", Type::string, std::nullopt, "JSON; null removes it")};
  return actions;
}

}  // namespace

Schema runtime_schema() {
  Schema schema;
  add_run(schema.settings);
  add_model(schema.settings);
  add_train(schema.settings);
  add_computing(schema.settings);
  add_optimizer(schema.settings);
  add_data_and_evaluation(schema.settings);
  add_recovery(schema.settings);
  add_machinery(schema.settings);
  for (auto& spec : nccl_settings()) schema.settings.push_back(std::move(spec));
  schema.hints = nccl_hints();
  schema.actions = all_actions();
  schema.constraints = {
      {Constraint::Kind::divides, "model.width", "model.heads", "every head gets an equal part of the width"},
      {Constraint::Kind::at_most, "sched.warmup_steps", "train.steps", "the warm-up would outlast the run"},
      {Constraint::Kind::at_most, "train.micro_batch", "train.batch_size",
       "a micro-batch is cut from a rank's slice of the batch; 0 takes the whole slice at once"},
  };
  for (auto& rule : nccl_constraints()) schema.constraints.push_back(std::move(rule));
  return schema;
}

}  // namespace footplate
