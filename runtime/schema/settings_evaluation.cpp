#include "runtime/schema/rows.h"
#include "runtime/schema/settings_groups.h"

namespace footplate {
namespace {

std::vector<SettingRow> what_is_evaluated() {
  return {
      {.name = "eval.every",
       .value = 200,
       .unit = "steps",
       .or_time = true,
       .range = {.min = 0, .max = kManySteps},
       .role = Role::operate,
       .aliases = {"eval_interval", "eval.interval", "eval_every", "eval_steps"},
       .help = "The held-out text is evaluated once in this many steps, or in this time (\"30m\"). 0 = never",
       .example = "eval.every = 500"},
      {.name = "eval.batches",
       .value = 0,
       .unit = "batches",
       .range = {.min = 0, .max = 1e9},
       .role = Role::operate,
       .help = "An evaluation has this many batches, over all ranks. 0 takes everything that is held out",
       .example = "eval.batches = 20"},
      {.name = "eval.batch_size",
       .value = 32,
       .unit = "sequences",
       .range = {.min = 1, .max = 1000000},
       .role = Role::operate,
       .help = "A batch of an evaluation has this many sequences",
       .example = "eval.batch_size = 16"},
      {.name = "eval.at_end",
       .value = true,
       .role = Role::operate,
       .help = "The run ends with an evaluation of everything that is held out",
       .example = "eval.at_end = false"},
  };
}

std::vector<SettingRow> how_it_is_evaluated() {
  return {
      {.name = "eval.mode",
       .value = "all",
       .choices = {"all", "one", "off"},
       .role = Role::operate,
       .help = "Each rank evaluates a slice (all), rank 0 evaluates alone (one), or nobody does (off)",
       .example = "eval.mode = \"one\""},
      {.name = "eval.async",
       .value = false,
       .role = Role::operate,
       .help = "Evaluations run beside training, on a copy of the parameters, which takes memory for a "
               "second model. There is one at a time; an evaluation that falls due during another one is "
               "left out. eval.now() and the last evaluation still hold training",
       .example = "eval.async = true"},
      {.name = "eval.meet_timeout_s",
       .value = 300.0,
       .unit = "s",
       .range = {.min = 0, .max = kDay, .exclusive_min = true},
       .role = Role::operate,
       .help = "Ranks that have evaluated their part wait this long for the last one. Then all skip this "
               "evaluation and train on. With eval.mode \"one\" the others wait at least comm.eval_timeout_s",
       .example = "eval.meet_timeout_s = 60"},
      {.name = "eval.on_timeout",
       .value = "skip",
       .choices = {"wait", "skip", "stop"},
       .aliases = {"comm.eval_on_timeout"},
       .help = "Decides what happens when a collective of an evaluation is past its deadline and all "
               "ranks answer. skip: communicators are rebuilt, the evaluation is recorded as failed and "
               "training goes on. wait: the collective is reported and waited for. stop: the run ends "
               "resumable (exit code 75)",
       .example = "eval.on_timeout = \"wait\""},
  };
}

}  // namespace

void add_evaluation_settings(std::vector<SettingSpec>& table) {
  add(table, what_is_evaluated());
  add(table, how_it_is_evaluated());
}

}  // namespace footplate
