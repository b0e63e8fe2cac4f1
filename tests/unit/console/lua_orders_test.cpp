// Chunks and waiting: orders, handles, at(), undo(), and what becomes of them.

#include <gmock/gmock.h>

#include "fake_console.h"
#include "protocol/own_session.h"

namespace footplate::test {
namespace {

using testing::HasSubstr;

class LuaOrders : public LuaChunks {};

TEST_F(LuaOrders, ActionsReturnHandles) {
  EXPECT_EQ(text_of("local loss = eval.now{ batches = 50 }:wait().loss return loss"), "1.5");
  EXPECT_EQ(console.orders.at(0).calls.at(0).arguments["batches"], 50);
  EXPECT_EQ(text_of("h = ckpt.save('before') return h.state"), "staged");
  EXPECT_EQ(console.orders.at(1).calls.at(0).arguments["tag"], "before");
  EXPECT_EQ(text_of("return h.state, h.order"), "done\n2");
  EXPECT_EQ(text_of("return run.pause('why')"), "run.pause done (order 3)");
  EXPECT_EQ(console.run("return h").value["state"], "done");
  EXPECT_THAT(error_of("eval.now('x')"), HasSubstr("takes no text"));
  EXPECT_THAT(error_of("eval.now{ batchs = 5 }"), HasSubstr("did you mean batches?"));
  EXPECT_THAT(error_of("return h.stat"), HasSubstr("a handle has"));
}

TEST_F(LuaOrders, ALoadIsSpelledOut) {
  const auto arguments = [&](const std::string& chunk) {
    text_of(chunk);
    return console.orders.back().calls.at(0).arguments;
  };
  EXPECT_EQ(arguments("ckpt.load(-500)"), Json({{"ref", "-500"}}));
  EXPECT_EQ(arguments("ckpt.load('best')"), Json({{"ref", "best"}}));
  const Json both =
      arguments("ckpt.load{ ref = 300.0, set = { optim = { lr_scale = 2 }, ['log.every'] = 5 } }");
  EXPECT_EQ(both["ref"], "300");
  EXPECT_EQ(Json::parse(both["set"].get<std::string>()), Json({{"log.every", 5}, {"optim.lr_scale", 2.0}}));
  EXPECT_EQ(arguments("ckpt.load{ set = '{\"log.every\":5}' }")["set"], "{\"log.every\":5}")
      << "as the journal";
  EXPECT_EQ(arguments("ckpt.load{ ref = 300, skip = { steps = 30 } }"),
            Json({{"ref", "300"}, {"skip_steps", 30}}));
  EXPECT_THAT(error_of("ckpt.load{ skip = 30 }"), HasSubstr("as in skip = { steps = 30 }"));
  EXPECT_THAT(error_of("ckpt.load{ skip = { step = 30 } }"), HasSubstr("as in skip = { steps = 30 }"));
  EXPECT_THAT(error_of("ckpt.load{ ref = 1.5 }"), HasSubstr("a step is a whole number; got 1.5"));
  EXPECT_THAT(error_of("ckpt.load{ set = { optim = { lr_scal = 2 } } }"),
              HasSubstr("did you mean optim.lr_scale?"));
  EXPECT_THAT(error_of("ckpt.load{ set = {} }"), HasSubstr("set is a table of settings"));
  EXPECT_THAT(error_of("ckpt.load{ set = 3 }"), HasSubstr("set is a table of settings"));
  EXPECT_THAT(error_of("run.pause(3)"), HasSubstr("takes named arguments"));
}

TEST_F(LuaOrders, WaitCommitsWhatIsStagedAndKeepsIt) {
  EXPECT_THAT(error_of("log.every = 10 eval.now():wait() optim.lr_scale = 0.5 error('later')"),
              HasSubstr("later"));
  ASSERT_EQ(console.orders.size(), 1U);
  EXPECT_EQ(console.orders[0].changes.size(), 1U);
  EXPECT_EQ(text_of("return log.every, optim.lr_scale"), "10\n1");
}

TEST_F(LuaOrders, AFailedCallRaises) {
  console.call_error = "out of memory on rank 1";
  EXPECT_THAT(error_of("eval.now():wait()"), HasSubstr("eval.now failed: out of memory on rank 1"));
  EXPECT_EQ(text_of("local ok, why = pcall(function() return eval.now():wait() end) return ok"), "false");
  EXPECT_EQ(text_of("return eval.now()"), "eval.now failed (order 3): out of memory on rank 1");
  EXPECT_EQ(console.run("return eval.now()").value["error"], "out of memory on rank 1");
}

TEST_F(LuaOrders, ARefusalNamesTheReasonAndItsKind) {
  console.refuse_with = "rank 3: not enough memory";
  const auto outcome = console.run("log.every = 10");
  EXPECT_EQ(outcome.error->kind, ErrorKind::refused);
  EXPECT_THAT(outcome.error->message,
              HasSubstr("order 1 was refused, nothing changed: rank 3: not enough memory"));
}

TEST_F(LuaOrders, RanksThatDisagreeAreAnAlarm) {
  console.disagreement = "rank 1 has digest 17, the others 23";
  text_of("log.every = 10");
  EXPECT_EQ(console.talk,
            "log.every 50 -> 10, applied at step 12041 on 8/8 ranks\nALARM: the ranks disagree about it: "
            "rank 1 has digest 17, the others 23\n");
}

TEST_F(LuaOrders, NewCommunicatorsAreSaid) {
  console.renewed_s = 1.94;
  text_of("log.every = 10");
  EXPECT_EQ(console.talk, "log.every 50 -> 10, new communicators at step 12041 on 8/8 ranks, 1.9 s\n");
}

TEST_F(LuaOrders, WaitingIsSaidAndTimeOutWithdraws) {
  console.waiting = {"waiting for rank 3: step 812, all_reduce #4471, 42 s"};
  text_of("log.every = 10");
  EXPECT_THAT(console.talk,
              HasSubstr("waiting for rank 3: step 812, all_reduce #4471, 42 s\nlog.every 50 -> 10"));
  console.never_agreed = true;
  const auto outcome = console.run("log.every = 20");
  EXPECT_EQ(outcome.error->kind, ErrorKind::timed_out);
  EXPECT_THAT(
      outcome.error->message,
      HasSubstr(
          "within 30 s (waiting for rank 3: step 812, all_reduce #4471, 42 s); withdrawn, nothing changed"));
}

TEST_F(LuaOrders, ASilentRank0IsNamedAndNothingHasChanged) {
  console.never_agreed = true;
  console.silent = "rank 0 silent for 30.1 s, last seen at step 812 in reduce";
  const auto outcome = console.run("log.every = 20");
  EXPECT_EQ(outcome.error->kind, ErrorKind::timed_out);
  EXPECT_THAT(
      outcome.error->message,
      HasSubstr("not agreed by all ranks within 30 s (rank 0 silent for 30.1 s, last seen at step 812 "
                "in reduce); nothing has changed, and it is withdrawn once rank 0 goes on"));
}

TEST_F(LuaOrders, AtSaysWhereItsStepIsOver) {
  console.first_step = 812;
  text_of("at(100, { log = { every = 10 } })");
  EXPECT_THAT(console.talk,
              HasSubstr("warning: step 100 was over before all ranks could agree; it applies at "
                        "step 812\nlog.every -> 10: committed for step 812"));
  text_of("at(812, { log = { every = 11 } })");
  EXPECT_THAT(console.talk, testing::Not(HasSubstr("warning")));
}

TEST_F(LuaOrders, AnInterruptedWaitWithdrawsAndEndsTheChunk) {
  console.interrupt_waits = true;
  EXPECT_THAT(error_of("pcall(function() log.every = 10 run.wait{ step = 900 } end) while true do end"),
              HasSubstr("interrupted"));
  EXPECT_EQ(text_of("return log.every"), "50");
  EXPECT_NE(std::find(console.asked.begin(), console.asked.end(), "withdraw"), console.asked.end());
}

TEST_F(LuaOrders, WaitingForAnEarlierCallCommitsWhatIsStaged) {
  text_of("local h = eval.now() run.wait{ seconds = 0 } log.every = 7 h:wait()");
  EXPECT_EQ(console.orders.size(), 2U);
  EXPECT_EQ(console.asked.back(), "wait_call") << "and only then waits";
}

TEST_F(LuaOrders, AtIsAnOrderOfItsOwn) {
  EXPECT_EQ(text_of("return at(20000, { sched = { base_lr = 1e-4 } }).state"), "staged");
  ASSERT_EQ(console.orders.size(), 1U);
  EXPECT_EQ(console.orders[0].at_step, 20000);
  EXPECT_EQ(console.talk, "sched.base_lr -> 1e-4: committed for step 20000 (order 1, orders() shows it)\n");
  text_of("log.every = 7 at(12041, { log = { every = 10 } })");
  ASSERT_EQ(console.orders.size(), 3U);
  EXPECT_FALSE(console.orders[1].at_step);
  EXPECT_THAT(error_of("at(5, {})"), HasSubstr("changes nothing"));
}

TEST_F(LuaOrders, AtCanBeWithdrawn) {
  text_of("h = at(20000, { log = { every = 1 } })");
  text_of("h:cancel()");
  EXPECT_EQ(text_of("return h.state"), "withdrawn");
  text_of("at(30000, { log = { every = 1 } })");
  text_of("orders[2]:cancel()");
  EXPECT_EQ(text_of("return orders[2].state"), "withdrawn");
  EXPECT_THAT(error_of("return orders[99]"), HasSubstr("there is no order 99"));
  EXPECT_EQ(text_of("local h = at(9, { log = { every = 1 } }) h:cancel() return h.state"), "dropped");
  EXPECT_EQ(console.orders.size(), 2U);
}

TEST_F(LuaOrders, CancelSaysWhereThereIsNothingToCancel) {
  text_of("log.every = 10");
  EXPECT_THAT(text_of("return orders[1]:cancel()"), HasSubstr("false"));
  EXPECT_THAT(text_of("return select(2, orders[1]:cancel())"), HasSubstr("order 1 has been applied already"));
  text_of("at(30000, { log = { every = 1 } })");
  EXPECT_EQ(text_of("return orders[2]:cancel()"), "true");
  EXPECT_THAT(text_of("return select(2, orders[2]:cancel())"), HasSubstr("order 2 was withdrawn already"));
}

TEST_F(LuaOrders, AnOrderThatWaitsMayBeMeantByUndo) {
  text_of("log.every = 20");
  text_of("at(20000, { log = { every = 1 } })");
  EXPECT_THAT(error_of("undo()"), HasSubstr("orders[2]:cancel() withdraws it"));
  EXPECT_EQ(text_of("return log.every"), "20");
}

TEST_F(LuaOrders, UndoGoesBackOrderByOrderAndRedoForth) {
  text_of("log.every = 10");
  text_of("optim.lr_scale = 0.5");
  text_of("log.every = 20");
  text_of("undo()");
  EXPECT_EQ(console.talk, "order 3 undone: log.every 20 -> 10, applied at step 12041 on 8/8 ranks\n");
  text_of("eval.now()");  // changes no setting
  text_of("undo()");
  EXPECT_THAT(console.talk, HasSubstr("order 2 undone: optim.lr_scale 0.5 -> 1"));
  text_of("undo()");
  EXPECT_EQ(text_of("return log.every, optim.lr_scale"), "50\n1");
  EXPECT_THAT(error_of("undo()"),
              HasSubstr("all that this session changed is undone; redo() brings order 1 back"));
  text_of("redo()");
  EXPECT_THAT(console.talk, HasSubstr("order 1 redone: log.every 50 -> 10"));
  text_of("redo()");
  text_of("redo()");
  EXPECT_EQ(text_of("return log.every, optim.lr_scale"), "20\n0.5");
  EXPECT_THAT(error_of("redo()"), HasSubstr("nothing to redo"));
  text_of("undo()");
  EXPECT_EQ(text_of("return log.every"), "10") << "what came back is taken again";
  text_of("log.every = 7");
  EXPECT_THAT(error_of("redo()"), HasSubstr("nothing to redo")) << "somebody went another way";
}

TEST_F(LuaOrders, TwoUndosInAChunkAreOneOrder) {
  text_of("log.every = 10");
  text_of("log.every = 20");
  EXPECT_THAT(error_of("undo() undo() undo()"), HasSubstr("is undone; redo() brings order 1 back"));
  EXPECT_EQ(text_of("return log.every"), "20") << "an error drops all";
  text_of("undo() undo()");
  EXPECT_EQ(console.talk,
            "order 2 undone, order 1 undone: log.every 20 -> 50, applied at step 12041 on 8/8 ranks\n");
  EXPECT_EQ(console.orders.back().changes.at(0).expect, Value(std::int64_t{20}));
  text_of("redo() redo()");
  EXPECT_EQ(text_of("return log.every"), "20");
}

/// Also one of the same user: each undoes its own.
TEST_F(LuaOrders, UndoLeavesOtherSessionsAlone) {
  Order theirs{7, "s9", "ann", "", {}, {{"log.every", std::int64_t{10}, {}}}, {}};
  console.others.push_back(
      {{"id", 7},
       {"state", "applied"},
       {"order", to_json(theirs)},
       {"applied", to_json(Applied{7, 5, 8, 8, "", {{"log.every", std::int64_t{50}, std::int64_t{10}}}})}});
  console.session().settings_changed({{{"log.every", {10, "order 7 (ann)"}}}});
  EXPECT_THAT(
      error_of("undo()"),
      HasSubstr("no order of this session that changed a setting; the last change is order 7 of ann in s9: "
                "to put it back, log.every = 50"));
  text_of("optim.lr_scale = 0.5");
  text_of("undo()");
  EXPECT_EQ(text_of("return log.every, optim.lr_scale"), "10\n1");
}

TEST_F(LuaOrders, AHandleHasStepAndResult) {
  EXPECT_EQ(text_of("local h = eval.now() h:wait() return h.step"), "12041");
  EXPECT_EQ(text_of("log.every = 10"), "");
  EXPECT_EQ(text_of("return orders[2].step .. ' ' .. orders[2].result.ranks"), "12041 8");
  EXPECT_THAT(text_of("local h = eval.now() h:wait() return select(2, h:cancel())"),
              HasSubstr("eval.now is done already"));
}

TEST_F(LuaOrders, WhatASetSaysTwiceOrWronglyIsAnError) {
  EXPECT_THAT(error_of("set{ log = { every = 34 }, ['log.every'] = 35 }"),
              HasSubstr("names log.every twice"));
  EXPECT_THAT(error_of("log.set{ every = 34, expect = 50 }"), HasSubstr("expect is a table"));
  EXPECT_TRUE(console.orders.empty());
}

TEST_F(LuaOrders, AreWalkedByPairs) {
  text_of("log.every = 10");
  text_of("log.every = 20");
  EXPECT_EQ(text_of("local t = {} for id, order in pairs(orders) do t[#t + 1] = id .. order.state end "
                    "table.sort(t) return table.concat(t, ' ')"),
            "1applied 2applied");
}

TEST_F(LuaOrders, AreCountedWalkedAndAskedForByNumber) {
  EXPECT_EQ(text_of("return #orders"), "0");
  text_of("log.every = 10");
  text_of("log.every = 20");
  EXPECT_EQ(text_of("return #orders"), "2");
  EXPECT_EQ(text_of("local t = {} for id, order in ipairs(orders) do t[#t + 1] = id .. order.state end "
                    "return table.concat(t, ' ')"),
            "1applied 2applied");
  EXPECT_THAT(error_of("return orders[-1]"), HasSubstr("there is no order -1; orders() lists them"));
  EXPECT_THAT(error_of("return orders['x']"),
              HasSubstr("a whole number in brackets, as in orders[17], not x"));
  EXPECT_THAT(error_of("return rules[1.5]"), HasSubstr("as in rules[3], not 1.5"));
  EXPECT_EQ(text_of("return #rules, #jobs"), "0\n0");
}

TEST_F(LuaOrders, RulesAndJobsOrderInTheirUsersName) {
  EXPECT_EQ(given_by("ann", "rule 3"), "ann, rule 3");
  EXPECT_EQ(given_by("ann", "job:watch"), "ann, job watch");
  EXPECT_EQ(given_by("ann", "s4"), "ann");
}

TEST_F(LuaOrders, ASetOfNothingIsAnError) {
  EXPECT_THAT(error_of("set{}"), HasSubstr("changes nothing"));
  EXPECT_THAT(error_of("set{ force = true }"), HasSubstr("changes nothing"));
  EXPECT_THAT(error_of("set{ log = {} }"), HasSubstr("log = {} names no setting"));
  EXPECT_THAT(error_of("log.set{}"), HasSubstr("log.set{ NAME = VALUE }"));
  EXPECT_THAT(error_of("at(9000, { log = {} })"), HasSubstr("log = {} names no setting"));
  EXPECT_TRUE(console.orders.empty());
}

TEST_F(LuaOrders, UndoPutsBackMyLastOrderUnlessItWasTouched) {
  EXPECT_THAT(error_of("undo()"), HasSubstr("there is no order of this session"));
  text_of("log.every = 10");
  text_of("log.every = 10");
  EXPECT_EQ(console.talk, "log.every stays 10, applied at step 12041 on 8/8 ranks\n");
  text_of("eval.now()");
  text_of("undo()");
  EXPECT_EQ(text_of("return log.every"), "50");
  EXPECT_EQ(console.orders.back().changes.at(0).expect, Value(std::int64_t{10}));
  text_of("log.every = 20");
  EXPECT_THAT(error_of("log.every = 25 undo()"), HasSubstr("this chunk has set log.every already"));
  EXPECT_EQ(text_of("return log.every"), "20");
  console.session().settings_changed({{{"log.every", {30, "order 9 (bob)"}}}});
  EXPECT_THAT(error_of("undo()"), HasSubstr("it is 30 now (order 9 (bob))"));
}

/// What comm.auto = "apply" has ordered: whether it is meant isn't guessed.
TEST_F(LuaOrders, UndoAfterAnOrderOfFootplatesOwnNamesBoth) {
  const auto by_footplate = [&](std::uint64_t id, double before, double after) {
    const Order order{id, kOwnSession, kOwnSession, "", {}, {{"train.clip_norm", after, before}}, {}};
    console.others.push_back(
        {{"id", id},
         {"state", "applied"},
         {"order", to_json(order)},
         {"applied", to_json(Applied{id, 5, 8, 8, "", {{"train.clip_norm", before, after}}})}});
    console.session().settings_changed({{{"train.clip_norm", {after, "order 9 (footplate)"}}}});
  };
  by_footplate(9, 1, 3);
  EXPECT_THAT(error_of("undo()"),
              HasSubstr("order 9 came last, and is footplate's own (comm.auto): to put it back, "
                        "train.clip_norm = 1"));
  console.others.clear();
  text_of("log.every = 10");
  by_footplate(9, 3, 4);
  EXPECT_THAT(error_of("undo()"), HasSubstr("train.clip_norm = 3; to put back your order 1, log.every = 50"));
  console.session().settings_changed({{{"train.clip_norm", {3, "order 12 (bob)"}}}});
  EXPECT_EQ(text_of("undo() return log.every"), "50") << "it isn't in force any more";
}

TEST_F(LuaOrders, OrdersAndJournalCanBeRead) {
  EXPECT_EQ(text_of("return orders()"), "no orders yet");
  text_of("log.every = 10");
  EXPECT_THAT(text_of("orders()"), HasSubstr("1  applied at step 12041 · ann · log.every -> 10"));
  EXPECT_EQ(console.run("return orders()").value.at(0)["state"], "applied");
  EXPECT_THAT(text_of("journal()"), HasSubstr("at(12041, { log = { every = 10 } })"));
}

TEST_F(LuaOrders, RunWaitCommitsFirst) {
  EXPECT_EQ(text_of("log.every = 10 return run.wait{ step = 900 }"), "900");
  EXPECT_EQ(console.asked, (std::vector<std::string>{"order", "wait_order", "wait_step"}));
  EXPECT_THAT(error_of("run.wait{ stp = 900 }"), HasSubstr("run.wait takes one of step"));
  EXPECT_THAT(error_of("run.wait{ seconds = -1 }"), HasSubstr("seconds = -1: 0 or more"));
  EXPECT_THAT(error_of("run.wait{ seconds = 1, timeout_s = 2 }"),
              HasSubstr("timeout_s is for step and event"));
}

TEST_F(LuaOrders, OutputIsBoundedAndSaidSo) {
  text_of("for i = 1, 3000 do print(('x'):rep(1000)) end");
  EXPECT_EQ(console.out.size(), 1024U * 1024);
  EXPECT_EQ(console.talk, "output cut at 1048576 bytes\n");
  text_of("print(1, nil, 'a')");
  EXPECT_EQ(console.out, "1\tnil\ta\n");
}

}  // namespace
}  // namespace footplate::test
