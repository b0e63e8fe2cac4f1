#include "runtime/schema/rows.h"
#include "runtime/schema/settings_groups.h"

namespace footplate {
namespace {

std::vector<ActionRow> evaluation_and_checkpoints() {
  return {
      {.name = "eval.now",
       .help = "Evaluate on the held-out text at the agreed step",
       .example = "return eval.now{ batches = 50 }:wait().loss",
       .result = "loss, tokens, batches, seconds, step, best",
       .params = {{.name = "batches",
                   .type = Type::integer,
                   .unit = "batches",
                   .range = {.min = 0, .max = 1e9},
                   .help = "how many batches, over all ranks; 0: all of the held-out text; left out: "
                           "eval.batches"}}},
      {.name = "ckpt.save",
       .help = "Save a checkpoint of the agreed step. It is done once that is on the disk; training goes on "
               "meanwhile (ckpt.async)",
       .example = "ckpt.save{ tag = \"before-spike\" }:wait()",
       .result = "path, step, seconds, bytes, waited_s",
       .params = {{.name = "tag",
                   .type = Type::string,
                   .help = "a name of its own; tagged checkpoints are kept until ckpt.delete or ckpt.tag "
                           "takes the tag away"}}},
      {.name = "ckpt.tag",
       .help = "Give a checkpoint a tag, and take it from the one that had it, which ckpt.keep may then "
               "remove",
       .example = "ckpt.tag{ tag = \"good\", ref = \"latest\" }",
       .result = "path, step, tag",
       .params =
           {{.name = "tag",
             .type = Type::string,
             .value = "",
             .help = "up to 64 letters, digits, '-' and '_'; tagged checkpoints are kept"},
            {.name = "ref", .type = Type::string, .value = "latest", .help = "which one, as for ckpt.load"}}},
      {.name = "ckpt.delete",
       .role = Role::admin,
       .dangerous = true,
       .help = "Remove a tagged checkpoint. The run's newest one stays",
       .example = "ckpt.delete{ tag = \"before-spike\", force = true }",
       .result = "path, step, tag",
       .params = {{.name = "tag", .type = Type::string, .value = "", .help = "its tag"}}},
      {.name = "ckpt.load",
       .role = Role::admin,
       .dangerous = true,
       .help = "Go back to a checkpoint of this run at the agreed step. The ranks end, and are started "
               "again from there in a branch of their own. What came after the last save is gone",
       .example = "ckpt.load{ ref = \"-500\", set = { optim = { lr_scale = 0.5 } } }",
       .result = "path, step, branch, settings",
       .params =
           {{.name = "ref",
             .type = Type::string,
             .value = "latest",
             .help = "a step, one relative to now (-500), a tag, \"best\", \"latest\", or the "
                     "checkpoint's path; a step takes the nearest earlier checkpoint"},
            {.name = "settings",
             .type = Type::choice,
             .value = "restore",
             .choices = {"restore", "keep"},
             .help = "restore: the settings of the checkpoint; keep: those with all live changes until now"},
            {.name = "set",
             .type = Type::string,
             .help = "settings that count from there on, whatever the checkpoint has: a table, as JSON "
                     "in an order of the protocol"},
            {.name = "skip_steps",
             .type = Type::integer,
             .unit = "steps",
             .range = {.min = 0, .max = kManySteps},
             .help = "leave out the data of this many steps from there on (data.offset); skip = { steps "
                     "= 30 } in Lua"},
            {.name = "branch",
             .type = Type::string,
             .help = "a name for what comes from there on; left out: from-STEP"},
            {.name = "reason", .type = Type::string, .help = "kept in result-K.json"}}},
  };
}

std::vector<ActionRow> ranks() {
  return {
      {.name = "comm.admit",
       .role = Role::admin,
       .help = "Let the process that comm.replace has started join. The run gives this order itself",
       .example = "comm.admit{}",
       .result = "the step",
       .params = {{.name = "start",
                   .type = Type::string,
                   .value = "",
                   .help = "the time at which the run that it is for was started"}}},
      {.name = "guard.repair",
       .role = Role::admin,
       .dangerous = true,
       .help = "Give one rank's parameters and optimizer state to all, at the agreed step",
       .example = "guard.repair{ source = 0 }",
       .result = "step, source",
       .params = {{.name = "source",
                   .type = Type::integer,
                   .value = std::int64_t{0},
                   .unit = "rank",
                   .range = {.min = 0, .max = 1000000},
                   .help = "the rank whose state counts"}}},
  };
}

std::vector<ActionRow> nccl() {
  return {
      {.name = "nccl.rebuild",
       .role = Role::admin,
       .help = "Make new NCCL communicators at the agreed step, with the settings as they are",
       .example = "nccl.rebuild()",
       .result = "step, seconds"},
      {.name = "nccl.measure",
       .help = "Measure what NCCL does for some steps: algorithm, protocol, channels and time of "
               "each size. The event nccl has the result",
       .example = "nccl.measure{ steps = 50 }",
       .result = "first, last, steps",
       .params = {{.name = "steps",
                   .type = Type::integer,
                   .value = std::int64_t{50},
                   .unit = "steps",
                   .range = {.min = 1, .max = 1000000},
                   .help = "how many steps"}}},
      {.name = "nccl.profile",
       .help = "Return what the last nccl.measure found",
       .example = "return nccl.profile():wait().step_ms",
       .result = "step, steps, step_ms, collectives"},
  };
}

std::vector<ActionRow> profiles() {
  return {
      {.name = "profile.now",
       .help = "Record what the ranks do in the next steps, the same steps on all of them: operations, a "
               "device's kernels, collectives and phases. The event profile has the path of the trace, which "
               "ui.perfetto.dev and chrome://tracing open",
       .example = "profile.now{ steps = 3 }",
       .result = "first, last, steps",
       .params = {{.name = "steps",
                   .type = Type::integer,
                   .value = std::int64_t{3},
                   .unit = "steps",
                   .range = {.min = 1, .max = 100},
                   .help = "how many steps"}}},
  };
}

std::vector<ActionRow> run() {
  return {
      {.name = "run.note",
       .help = "Write a line into the journal and the run's report, and show it to everybody who is "
               "attached. Trials report their results this way",
       .example = "run.note(\"new data from here on\")",
       .result = "the step",
       .params = {{.name = "text", .type = Type::string, .value = "", .help = "the line"}}},
      {.name = "run.pause",
       .help = "Hold all ranks at the agreed step. Orders still apply",
       .example = "run.pause(\"looking at the spike\")",
       .result = "the step",
       .params = {{.name = "reason", .type = Type::string, .help = "shown to everyone"}}},
      {.name = "run.resume",
       .help = "Go on after run.pause",
       .example = "run.resume()",
       .result = "the step"},
      {.name = "run.stop",
       .role = Role::admin,
       .dangerous = true,
       .help = "End the run at the agreed step, after a checkpoint",
       .example = "run.stop()",
       .result = "the step",
       .params =
           {{.name = "save", .type = Type::boolean, .value = true, .help = "write a checkpoint first"},
            {.name = "resumable", .type = Type::boolean, .value = false, .help = "exit code 75 instead of 0"},
            {.name = "reason", .type = Type::string, .help = "kept in result.json"},
            {.name = "error",
             .type = Type::string,
             .help = "what went wrong in a script: exit code 3, and this as the reason"}}},
      {.name = "run.restart",
       .role = Role::admin,
       .dangerous = true,
       .help = "End the run at the agreed step, after a checkpoint, and start it again from there. The new "
               "start has what is kept for it (settings(\"pending\")), and --restarts doesn't count it",
       .example = "run.restart()",
       .result = "the step",
       .params = {{.name = "reason", .type = Type::string, .help = "kept in result-K.json"}}},
      {.name = "run.store",
       .help = "Keep data with the run. store.x = … is the usual way",
       .example = "run.store{ name = \"best\", value = \"1.25\" }",
       .result = "the step",
       .params = {{.name = "name", .type = Type::string, .help = "where in store"},
                  {.name = "value", .type = Type::string, .help = "JSON; null removes it"},
                  {.name = "keep",
                   .type = Type::boolean,
                   .help = "true: it survives ckpt.load; else it is as in the checkpoint then"}}},
  };
}

}  // namespace

void add_actions(std::vector<ActionSpec>& table) {
  add(table, evaluation_and_checkpoints());
  add(table, ranks());
  add(table, nccl());
  add(table, profiles());
  add(table, run());
}

}  // namespace footplate
