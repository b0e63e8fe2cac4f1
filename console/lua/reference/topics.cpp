#include "console/lua/reference/topics.h"

#include <array>

namespace footplate {
namespace {

constexpr std::array kApi = {
    Topic{"set",
          "set{ sched = { base_lr = 1e-4 }, expect = { sched = { base_lr = 3e-4 } } }: together or not at "
          "all; with "
          "expect only if the values are still these"},
    Topic{"at",
          "at(20000, { sched = { base_lr = 1e-4 } }): applied exactly at step 20000, committed ahead; "
          "at(20000, function() … end): a rule that runs shortly before, on the metrics of then"},
    Topic{"every",
          "every(1000, function() ckpt.save() end): a rule; it belongs to the run (rules() lists, :off() "
          "ends one)"},
    Topic{"after", "after{ minutes = 30, fn = function() … end }: once; also seconds, steps"},
    Topic{"on",
          "on(\"eval\", function(e) … end): start log eval ckpt warn order stop; options budget_ms, "
          "on_error, sync"},
    Topic{"rules", "rules(): the run's rules; rules[3]:off() ends one"},
    Topic{"jobs",
          "jobs(): the job scripts of footplate run --script; jobs.NAME:off() ends one and its rules"},
    Topic{"store",
          "store.x = 5: data of the run for all sessions, rules and jobs, kept in checkpoints; 64 KiB"},
    Topic{"try",
          "try{ set = { optim = { lr_scale = 0.5 } }, steps = 100 }: measures, changes, measures again, and "
          "keeps the change or puts back what was; metric (\"train/loss\"), better_by or keep_if = "
          "function(before, after) … end, abandon_if = function(m) … end, save = true"},
    Topic{"undo", "undo(): puts back what your last order changed, if nobody has touched it since"},
    Topic{"orders", "orders(): all orders, open ones first; orders[17]:cancel() withdraws one"},
    Topic{"journal", "journal(): the end of the run's journal, every applied change as Lua"},
    Topic{"status", "status(): where the run is, and each rank"},
    Topic{
        "settings",
        "settings(\"lr\"): settings whose name, other names or help have this text; without it all of them; "
        "settings(\"pending\"): what is set and waits for the next start"},
    Topic{"help", "help(\"log.every\"): what a setting, an action, a group or a function does"},
    Topic{"metrics",
          "metrics[\"train/loss\"] or metrics.loss: the latest value of a metric; metrics() has all of them"},
    Topic{"ranks", "ranks[0]: one rank; #ranks is their number; for rank, it in pairs(ranks)"},
    Topic{"ranks.stacks",
          "ranks.stacks(): where every thread of every rank is, frame by frame, also while training hangs; "
          "ranks.stacks(2) of one rank"},
    Topic{"run",
          "run.wait{ step = 30000 } waits until then, also event = \"eval\", seconds = 60; "
          "run.stop_when(function(m) … end); "
          "run.name run.id run.step run.state run.resumed"},
    Topic{"print", "print(…): to the output of this chunk"},
};

constexpr const char* kLua = "of Lua 5.4";
constexpr std::array kLuaNames = {
    Topic{"run.wait",
          "run.wait{ step = 30000 }: until the run has come that far; also event = \"eval\", each with "
          "timeout_s "
          "= 60; seconds = 60"},
    Topic{"run.stop_when",
          "run.stop_when(function(m) return m[\"eval/loss\"] < 1.2 end): a rule that ends the run"},
    Topic{
        "eval.cancel",
        "eval.cancel(): gives up the evaluation that is under way, whoever asked for it; true, or false and "
        "why there was nothing to cancel"},
    Topic{"comm.drop",
          "comm.drop(3): kills rank 3, which is stuck; the others go on with fewer (comm.on_loss). { force = "
          "true } "
          "as a second argument: without a question"},
    Topic{
        "comm.report",
        "comm.report(): the collectives of each rank so far, by operation and size: how many, how long, how "
        "fast, how many past their deadline"},
    Topic{"nccl.preset",
          "nccl.preset(\"ethernet\"): sets what is usual there and nobody has set; infiniband ethernet pcie "
          "nvlink conservative"},
    Topic{"nccl.show",
          "nccl.show(): NCCL's settings, where each comes from, its variable and when it applies"},
    Topic{"nccl.ras",
          "nccl.ras(): what NCCL's own service says of the run's communicators, such as ranks that are "
          "missing or "
          "behind; { verbose = true } says more. By hand only: asked often it has crashed jobs"},
    Topic{"nccl.try",
          "nccl.try{ set = { algo = \"tree\", max_size = \"1MiB\" }, steps = 50, keep_if = function(before, "
          "after) "
          "… end }: measures, changes, measures again, and keeps the change or puts back what was; without "
          "keep_if "
          "it keeps what is faster by better_by (0.02: 2 %)"},
    Topic{"nccl.tune",
          "nccl.tune{ budget_steps = 1000 }: tries algorithms and protocols for the sizes that take longest, "
          "and "
          "keeps what is faster"},
    Topic{"run.resumed", "in a job script: whether it is run again, after a resume"},
    Topic{"run.name", "name of the run"},
    Topic{"run.id", "id of this start"},
    Topic{"run.step", "the step that the run is at"},
    Topic{"run.state", "starting running paused evaluating saving ending ended"},
    Topic{"assert", kLua},
    Topic{"error", kLua},
    Topic{"ipairs", kLua},
    Topic{"load", kLua},
    Topic{"next", kLua},
    Topic{"pairs", kLua},
    Topic{"pcall", kLua},
    Topic{"select", kLua},
    Topic{"setmetatable", kLua},
    Topic{"tonumber", kLua},
    Topic{"tostring", kLua},
    Topic{"type", kLua},
    Topic{"xpcall", kLua},
    Topic{"coroutine.create", kLua},
    Topic{"coroutine.isyieldable", kLua},
    Topic{"coroutine.resume", kLua},
    Topic{"coroutine.running", kLua},
    Topic{"coroutine.status", kLua},
    Topic{"coroutine.wrap", kLua},
    Topic{"coroutine.yield", kLua},
    Topic{"math.abs", kLua},
    Topic{"math.ceil", kLua},
    Topic{"math.exp", kLua},
    Topic{"math.floor", kLua},
    Topic{"math.huge", kLua},
    Topic{"math.log", kLua},
    Topic{"math.max", kLua},
    Topic{"math.min", kLua},
    Topic{"math.pi", kLua},
    Topic{"math.random", kLua},
    Topic{"math.sqrt", kLua},
    Topic{"math.tointeger", kLua},
    Topic{"string.byte", kLua},
    Topic{"string.char", kLua},
    Topic{"string.find", kLua},
    Topic{"string.format", kLua},
    Topic{"string.gmatch", kLua},
    Topic{"string.gsub", kLua},
    Topic{"string.len", kLua},
    Topic{"string.lower", kLua},
    Topic{"string.match", kLua},
    Topic{"string.rep", kLua},
    Topic{"string.reverse", kLua},
    Topic{"string.sub", kLua},
    Topic{"string.upper", kLua},
    Topic{"table.concat", kLua},
    Topic{"table.insert", kLua},
    Topic{"table.move", kLua},
    Topic{"table.remove", kLua},
    Topic{"table.sort", kLua},
    Topic{"table.unpack", kLua},
    Topic{"utf8.char", kLua},
    Topic{"utf8.codepoint", kLua},
    Topic{"utf8.len", kLua},
};

}  // namespace

std::span<const Topic> api_topics() {
  return kApi;
}

std::span<const Topic> lua_topics() {
  return kLuaNames;
}

}  // namespace footplate
