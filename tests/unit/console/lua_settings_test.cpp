// Settings as fields, actions as functions: what a script can write and what it is told when it can't.

#include <gmock/gmock.h>

#include "fake_console.h"

namespace footplate::test {
namespace {

using testing::HasSubstr;

class LuaSettings : public LuaChunks {};

TEST_F(LuaSettings, AssignmentBecomesOneOrderAtTheEndOfTheChunk) {
  EXPECT_EQ(text_of("log.every = 10; optim.lr_scale = 0.5; return log.every"), "10");
  ASSERT_EQ(console.orders.size(), 1U);
  EXPECT_EQ(console.orders[0].changes.size(), 2U);
  EXPECT_EQ(console.talk,
            "log.every 50 -> 10, optim.lr_scale 1 -> 0.5, applied at step 12041 on 8/8 ranks\n");
  EXPECT_EQ(text_of("log.every"), "10");
}

TEST_F(LuaSettings, ReadsSeeStagedValuesAndAnErrorDropsThem) {
  EXPECT_THAT(error_of("log.every = 10\nassert(log.every == 10)\nlog.evry = 3"),
              HasSubstr("chunk:3: unknown setting 'log.evry'; did you mean log.every?"));
  EXPECT_TRUE(console.orders.empty());
  EXPECT_EQ(text_of("log.every"), "50");
}

TEST_F(LuaSettings, ErrorsCarryTheirLine) {
  const auto outcome = console.run("local a = 1\nlog.every = -1");
  EXPECT_EQ(outcome.error_line, 2);
  EXPECT_EQ(outcome.error->kind, ErrorKind::script);
}

TEST_F(LuaSettings, ValuesAreCheckedWithWhatIsAllowed) {
  EXPECT_EQ(text_of("log.every = 20 / 2 return log.every"), "10");
  EXPECT_THAT(error_of("log.every = 2.5"), HasSubstr("expects a whole number"));
  EXPECT_THAT(error_of("log.every = -1"), HasSubstr("allowed: 0 to"));
  EXPECT_THAT(error_of("optim.lr_scale = 0/0"), HasSubstr("NaN"));
  EXPECT_THAT(error_of("optim.lr_scale = 1/0"), HasSubstr("infinity"));
  EXPECT_THAT(error_of("sched.kind = 'cosin'"), HasSubstr("did you mean 'cosine'?"));
  EXPECT_EQ(text_of("run.time_limit = '30m' return run.time_limit"), "1800");
}

/// It moves without an order: each read is of that moment.
TEST_F(LuaSettings, AComputedValueIsThatOfNow) {
  const auto now = [&](double lr) {
    console.computed = {{"optim.lr", {{"value", lr}, {"source", "computed"}}}};
  };
  now(2e-4);
  EXPECT_EQ(text_of("if optim.lr < 2.5e-4 then return optim.lr end"), "2e-4");
  now(1e-4);
  EXPECT_EQ(text_of("return optim.lr"), "1e-4");
  EXPECT_THAT(text_of("settings('optim.lr')"), HasSubstr("1e-4"));
  EXPECT_THAT(text_of("help('optim.lr')"), HasSubstr("1e-4"));
  EXPECT_THAT(text_of("optim"), HasSubstr("optim.lr = 1e-4"));
  EXPECT_EQ(text_of("for name, value in pairs(optim) do if name == 'lr' then return value end end"), "1e-4");
  EXPECT_EQ(console.run("return optim").value["lr"], 1e-4);
}

/// Silence would be worse: the run goes on with the old rate.
TEST_F(LuaSettings, AGlobalWithTheNameOfASettingIsAnError) {
  const std::string lr = error_of("lr = 1e-4");
  EXPECT_THAT(lr,
              HasSubstr("lr = … would make a variable and change no setting; it is called sched.base_lr or "
                        "optim.lr_scale"));
  EXPECT_THAT(lr, HasSubstr("write local lr = …"));
  EXPECT_THAT(error_of("clip_norm = 5"), HasSubstr("it is called train.clip_norm"));
  EXPECT_THAT(error_of("batches = 5"), HasSubstr("it is called eval.batches"));
  EXPECT_THAT(error_of("_G.lr = 5"), HasSubstr("it is called sched.base_lr"));
  EXPECT_THAT(error_of("return lr"), HasSubstr("unknown name 'lr'; it is called sched.base_lr"));
  EXPECT_EQ(text_of("local lr = 3 return lr"), "3");
  EXPECT_EQ(text_of("function lr() return 4 end return lr()"), "4") << "no setting is meant";
  EXPECT_EQ(text_of("learning = 5 return learning"), "5");
  EXPECT_TRUE(console.orders.empty());
  const auto registered = console.session().register_chunk(7, "lr = 5 every(9, print)", "rule");
  ASSERT_TRUE(registered.outcome.error);
  EXPECT_THAT(registered.outcome.error->message, HasSubstr("it is called sched.base_lr"));
}

TEST_F(LuaSettings, PresetsOfNcclLeaveWhatIsSet) {
  const std::string text = text_of("return nccl.preset('ethernet')");
  EXPECT_THAT(text, HasSubstr("nccl.buffer_bytes = 8388608"));
  EXPECT_THAT(console.talk, HasSubstr("nccl.buffer_bytes 0 -> 8388608 from the next start"));
  EXPECT_THAT(text_of("nccl.preset('ethernet')"), HasSubstr("nccl.buffer_bytes stays: it is set already"));
  EXPECT_THAT(text_of("nccl.socket_interface = 'eth7'; return nccl.preset('ethernet')"),
              HasSubstr("nccl.socket_interface stays"));
  EXPECT_THAT(error_of("nccl.preset('infinband')"), HasSubstr("did you mean 'infiniband'?"));
  EXPECT_THAT(text_of("nccl.show()"), HasSubstr("NCCL_BUFFSIZE=8388608"));
}

TEST_F(LuaSettings, APresetOfNcclIsASettingToo) {
  text_of("nccl.preset = 'ethernet'");
  EXPECT_THAT(console.talk, HasSubstr("nccl.preset none -> ethernet from the next start"));
  EXPECT_THAT(text_of("return settings('nccl.preset')"), HasSubstr("nccl.preset"));
  EXPECT_THAT(error_of("nccl.preset = 'conservative'"),
              HasSubstr("it is one of none, infiniband, ethernet, pcie"));
}

TEST_F(LuaSettings, VariablesOfNcclAreNoVariablesOfTheSession) {
  EXPECT_THAT(error_of("NCCL_BUFFSIZE = 4096"), HasSubstr("it is called nccl.buffer_bytes"));
  EXPECT_THAT(error_of("return NCCL_BUFFSIZE"), HasSubstr("it is called nccl.buffer_bytes"));
  EXPECT_THAT(error_of("nccl.NCCL_BUFFSIZE = 4096"), HasSubstr("it is called nccl.buffer_bytes"));
  EXPECT_THAT(error_of("NCCL_TIMEOUT = 1800"), HasSubstr("see comm.timeout_s"));
  EXPECT_EQ(text_of("MY_OWN = 3 return MY_OWN"), "3");
}

TEST_F(LuaSettings, CommReportIsATableThatPrints) {
  EXPECT_EQ(text_of("return comm.report()[1].mean_ms"), "0.5");
  EXPECT_THAT(text_of("comm.report()"),
              testing::AllOf(HasSubstr("past its deadline"), HasSubstr("1000 to 9999"), HasSubstr("0.5 ms"),
                             HasSubstr("8 MB/s"),
                             HasSubstr("\nproposed: late at 3 steps. If that is normal here: "
                                       "comm.timeout_s = 3")));
  EXPECT_TRUE(console.orders.empty());
}

TEST_F(LuaSettings, CommDumpTellsWhereTheLedgersAre) {
  EXPECT_EQ(text_of("comm.dump()"),
            "rank 0: /runs/r/ledgers/rank-0-1.jsonl (812 operations)\n"
            "rank 1: no file: it doesn't answer: rank 1: step 5, forward, 3.3 s");
  EXPECT_EQ(text_of("return comm.dump()[1].path"), "/runs/r/ledgers/rank-0-1.jsonl");
}

TEST_F(LuaSettings, RanksStacksIsDataThatPrints) {
  const Json frames = {"poll (libc.so.6)", "footplate::Trainer::run(…)"};
  const auto thread = [&](const char* name, int tid) {
    return Json{{"name", name}, {"tid", tid}, {"state", "sleeping"}, {"frames", frames}};
  };
  Json deaf = {{"name", "deaf"}, {"tid", 9}, {"state", "disk sleep"}, {"frames", Json::array()}};
  deaf["note"] = "doesn't answer, in the kernel at io_schedule";
  console.stacks["ranks"] = {
      {{"rank", 0}, {"threads", {thread("training", 5), thread("pool", 6), thread("pool", 7), deaf}}},
      {{"rank", 1}, {"threads", Json::array()}, {"silent_s", 3.25}, {"text", "step 5, forward, 3.3 s"}}};
  EXPECT_EQ(text_of("ranks.stacks()"),
            "rank 0\n"
            "  training (5, sleeping)\n    poll (libc.so.6)\n    footplate::Trainer::run(…)\n"
            "  pool (6, sleeping), and 1 more there\n    poll (libc.so.6)\n    footplate::Trainer::run(…)\n"
            "  deaf (9, disk sleep): doesn't answer, in the kernel at io_schedule\n"
            "rank 1 doesn't answer, last heard of 3.2 s ago: step 5, forward, 3.3 s");
  EXPECT_EQ(text_of("return ranks.stacks()[1].threads[3].frames[2]"), "footplate::Trainer::run(…)");
  EXPECT_EQ(console.run("return ranks.stacks()").value, console.stacks["ranks"]);
  text_of("ranks.stacks(1)");
  EXPECT_EQ(console.stacks_asked.front(), Json::object());
  EXPECT_EQ(console.stacks_asked.back(), (Json{{"rank", 1}}));
  EXPECT_THAT(error_of("ranks.stack()"), HasSubstr("there are ranks[0], #ranks and ranks.stacks()"));
  EXPECT_THAT(error_of("ranks.stacks('all')"), HasSubstr("number expected"));
}

TEST_F(LuaSettings, ComputedAndFixedSayWhatToDo) {
  EXPECT_THAT(error_of("optim.lr = 1e-4"), HasSubstr("set sched.base_lr or optim.lr_scale"));
  EXPECT_THAT(error_of("model.width = 1"), HasSubstr("fixed for the life of a run"));
  EXPECT_THAT(error_of("train.lr = 1e-4"), HasSubstr("it is called sched.base_lr"));
  EXPECT_THAT(error_of("ckpt.save = true"), HasSubstr("is an action: call it"));
  EXPECT_THAT(error_of("eval.noww()"), HasSubstr("did you mean eval.now()?"));
}

TEST_F(LuaSettings, ComputedMovesStandInParentheses) {
  text_of("train.steps = 4000");
  EXPECT_EQ(console.talk,
            "train.steps 2000 -> 4000 (optim.lr 0.00031 -> 0.00064), applied at step 12041 on 8/8 ranks\n");
}

TEST_F(LuaSettings, StepsBehindTheRunAreRefused) {
  EXPECT_THAT(error_of("train.steps = 5"),
              HasSubstr("train.steps = 5 is behind step 812: the run would end at once. run.stop() ends it"));
  EXPECT_THAT(error_of("set{ train = { steps = 5 } }"), HasSubstr("is behind step 812"));
  EXPECT_TRUE(console.orders.empty());
  text_of("train.set{ steps = 5, force = true }");
  EXPECT_EQ(console.orders.size(), 1U);
}

TEST_F(LuaSettings, AValueWithoutQuotesIsKnown) {
  EXPECT_THAT(error_of("sched.kind = cosine"),
              HasSubstr("'cosine' is a value of sched.kind: write it in quotes, \"cosine\""));
}

TEST_F(LuaSettings, ListsAreReadOnlyElementByElement) {
  EXPECT_EQ(text_of("return optim.betas"), "{ 0.9, 0.95 }");
  EXPECT_EQ(text_of("return optim.betas[2], #optim.betas"), "0.95\n2");
  EXPECT_THAT(error_of("optim.betas[1] = 0.8"), HasSubstr("assign the whole list: optim.betas = { … }"));
  EXPECT_EQ(text_of("optim.betas = { 0.8, 0.9 } return optim.betas"), "{ 0.8, 0.9 }");
  EXPECT_THAT(error_of("optim.betas = { 0.8 }"), HasSubstr("list of 2 numbers"));
}

TEST_F(LuaSettings, SetIsTogetherOrNotAtAll) {
  text_of("optim.set{ lr_scale = 0.5, weight_decay = 0.05 }");
  EXPECT_EQ(console.orders.at(0).changes.size(), 2U);
  text_of("pcall(function() optim.set{ lr_scale = 0.25, weight_decay = 7 } end)");
  EXPECT_EQ(console.orders.size(), 1U);
  text_of(
      "set{ sched = { base_lr = 1e-4 }, train = { clip_norm = 0.5 }, expect = { sched = { base_lr = 3e-4 } } "
      "}");
  const auto& changes = console.orders.at(1).changes;
  ASSERT_EQ(changes.size(), 2U);
  for (const auto& change : changes) EXPECT_EQ(change.expect.has_value(), change.name == "sched.base_lr");
  text_of("set{ ['log.every'] = 5 }");
  EXPECT_THAT(error_of("set{ lgo = { every = 5 } }"), HasSubstr("lgo.every"));
  EXPECT_THAT(error_of("log.set{ every = 5, expect = { every = 'x' } }"), HasSubstr("whole number"));
  EXPECT_THAT(error_of("set{ log = { every = 5, force = true } }"), HasSubstr("unknown setting 'log.force'"));
  EXPECT_THAT(error_of("set{ log = { every = 5, expect = {} } }"), HasSubstr("unknown setting 'log.expect'"));
}

TEST_F(LuaSettings, CombinationsAreCheckedAtTheEnd) {
  EXPECT_THAT(error_of("eval.batches = 5000"), HasSubstr("eval.batches"));
  text_of("eval.batches = 5000 train.steps = 6000");
}

TEST_F(LuaSettings, NamesOfFootplateCannotBeReplaced) {
  EXPECT_THAT(error_of("log = 5"), HasSubstr("footplate's own name"));
  EXPECT_THAT(error_of("print = 5"), HasSubstr("footplate's own name"));
  EXPECT_THAT(error_of("lgo.every = 5"), HasSubstr("did you mean log?"));
  EXPECT_EQ(text_of("mine = 5"), "");
  EXPECT_EQ(text_of("return mine"), "5");
  EXPECT_THAT(error_of("string.rep = 1"), HasSubstr("read-only"));
}

TEST_F(LuaSettings, ValuesForPeopleAndForPrograms) {
  EXPECT_EQ(text_of("return 'plain'"), "plain");
  EXPECT_EQ(text_of("return { a = 1, b = { 'x', true } }"), "{ a = 1, b = { \"x\", true } }");
  const auto outcome = console.run("return { 1, 2.5, 'x', { nested = 0/0 } }");
  EXPECT_EQ(outcome.value.dump(), R"([1,2.5,"x",{"nested":"@nan"}])");
  EXPECT_EQ(console.run("return 1, 2").value.dump(), "[1,2]");
  EXPECT_EQ(console.run("= 1, 2").value.dump(), "[1,2]");  // as at Lua's own prompt
  EXPECT_EQ(console.run("return status().ranks").value.dump(), "[]");
  EXPECT_TRUE(console.run("local t = {} t.t = t return t").value.is_null());
  EXPECT_THAT(console.talk, HasSubstr("nested deeper"));
  EXPECT_EQ(console.run("return log").value["every"], 50);
}

TEST_F(LuaSettings, HelpIsMadeFromTheSchema) {
  EXPECT_THAT(text_of("help()"), HasSubstr("eval.now"));
  EXPECT_THAT(text_of("help('log.every')"), HasSubstr("example: log.every = 50"));
  EXPECT_THAT(text_of("help(optim)"), HasSubstr("optim.weight_decay"));
  EXPECT_THAT(text_of("help('eval.now')"), HasSubstr("batches"));
  EXPECT_THAT(text_of("help('log.evry')"), HasSubstr("did you mean log.every?"));
  EXPECT_THAT(text_of("help('comm.report')"), HasSubstr("comm.report(): the collectives of each rank"));
  EXPECT_THAT(text_of("help('run.wait')"), HasSubstr("run.wait{ step = 30000 }: until"));
  EXPECT_EQ(text_of("help('run.name')"), "run.name: name of the run");
  EXPECT_EQ(text_of("help('string.rep')"), "string.rep: of Lua 5.4");
  EXPECT_THAT(text_of("help('run')"), HasSubstr("run.stop_when(function"));
  EXPECT_THAT(text_of("settings('lr')"), HasSubstr("sched.base_lr"));
  for (const char* list : {"settings('nccl')", "help('nccl')"})
    EXPECT_THAT(text_of(list), HasSubstr("\nnccl.socket_interface  ")) << "a long name";
  EXPECT_EQ(console.run("return settings('log')").value.at(0)["name"], "log.every");
  EXPECT_EQ(text_of("local n = {} for k in pairs(eval) do n[#n + 1] = k end return table.concat(n, ' ')"),
            "every batches");
}

TEST_F(LuaSettings, WhatWaitsForTheNextStart) {
  EXPECT_EQ(text_of("settings('pending')"), "nothing waits for the next start");
  EXPECT_EQ(console.run("return settings('pending')").value, Json::array());
  console.pending = {
      {{"name", "nccl.buffer_bytes"}, {"value", 4096}, {"at_start", 0}, {"source", "order 2 (ann)"}}};
  EXPECT_THAT(text_of("settings('pending')"), HasSubstr("nccl.buffer_bytes  0 -> 4096  order 2 (ann)\n"));
  EXPECT_EQ(text_of("return settings('pending')[1].at_start"), "0");
}

TEST_F(LuaSettings, TheEvaluationThatIsUnderWayIsCancelledAtOnce) {
  EXPECT_EQ(text_of("return eval.cancel()"), "false\nno evaluation is under way");
  EXPECT_TRUE(console.cancelled.empty());
  console.status["state"] = "evaluating";
  EXPECT_EQ(text_of("return eval.cancel()"), "true");
  console.status["state"] = "running";
  console.status["evaluating_step"] = 800;
  EXPECT_EQ(text_of("return eval.cancel()"), "true");
  ASSERT_EQ(console.cancelled.size(), 2U);
  EXPECT_EQ(console.cancelled[1]["evaluation"], true);
}

TEST_F(LuaSettings, ARankIsDroppedAtOnce) {
  EXPECT_FALSE(console.run("comm.drop(3)").error);
  EXPECT_THAT(console.talk, HasSubstr("rank 3 is gone"));
  ASSERT_EQ(console.dropped.size(), 1U);
  EXPECT_EQ(console.dropped[0]["rank"], 3);
  EXPECT_THAT(error_of("comm.drop('three')"), HasSubstr("number expected"));
}

TEST_F(LuaSettings, ViewsReadTheLatest) {
  console.status["ranks"] = {{{"rank", 0}, {"step", 812}}, {{"rank", 1}, {"step", 811}}};
  console.metrics = {{"train/loss", 2.5}, {"eval/loss", 2.25}, {"perf/step_ms", 40}};
  EXPECT_EQ(text_of("return ranks[1].step, #ranks"), "811\n2");
  EXPECT_THAT(error_of("return ranks[2]"), HasSubstr("there is no rank 2"));
  EXPECT_THAT(error_of("return ranks.x"), HasSubstr("there is no ranks.x; there are ranks[0]"));
  for (const char* walk : {"pairs", "ipairs"})
    EXPECT_EQ(text_of("local t = {} for rank, it in " + std::string(walk) +
                      "(ranks) do t[#t + 1] = rank .. ' at ' .. it.step end return table.concat(t, ', ')"),
              "0 at 812, 1 at 811");
  EXPECT_EQ(text_of("local n = 0 for name, value in pairs(metrics) do n = n + value end return n"), "44.75");
  EXPECT_EQ(text_of("local n = 0 for _, x in ipairs({ 3, 4 }) do n = n + x end return n"), "7");
  EXPECT_EQ(text_of("return metrics.loss, metrics['eval/loss'], metrics.step_ms"), "2.5\n2.25\n40");
  EXPECT_THAT(error_of("return metrics.lsos"), HasSubstr("unknown metric"));
  EXPECT_EQ(text_of("return run.step, run.state, run.name"), "812\nrunning\nkjv-3");
}

}  // namespace
}  // namespace footplate::test
