// Rules, from end to end: a fake rank 0, a real console, real Lua processes.

#include <gmock/gmock.h>
#include <signal.h>

#include <algorithm>
#include <fstream>
#include <sstream>

#include "fake_rank0.h"
#include "test_client.h"

namespace footplate::test {
namespace {

using testing::HasSubstr;

Json log_line(std::int64_t step, double loss) {
  return {{"step", step}, {"train/loss", loss}};
}

/// Steps on, once the console has looked at the step before.
class Rules : public testing::Test {
 protected:
  void make(const std::vector<std::string>& arguments = {}, const Json& reports = Json::array(),
            const Json& hello = Json::object()) {
    rank0.emplace(folder.path(), arguments, reports, hello);
    client.emplace(rank0->socket());
  }

  /// The calls of an action that have been ordered so far.
  std::vector<Order> orders_with(const std::string& name) const {
    std::vector<Order> found;
    for (const Order& order : rank0->orders()) {
      bool has = false;
      for (const Change& change : order.changes) has = has || change.name == name;
      for (const Call& call : order.calls) has = has || call.action == name;
      if (has) found.push_back(order);
    }
    return found;
  }
  bool ordered(const std::string& name, std::size_t count = 1) const {
    return eventually([&] { return orders_with(name).size() >= count; });
  }

  /// The process of the rules: the console's child that isn't a client's and that a handler ran in.
  std::string published() const {
    std::string text;
    for (const Json& line : rank0->lines("publish")) text += line["data"].value("text", "") + "\n";
    return text;
  }
  bool says(const std::string& part) const {
    return eventually([&] { return published().find(part) != std::string::npos; });
  }
  Json rule(std::int64_t number) {
    const Json rules = client->eval("return rules()")["value"]["value"];
    for (const Json& one : rules)
      if (one["rule"] == number) return one;
    return nullptr;
  }

  TemporaryFolder folder;
  std::optional<FakeRank0> rank0;
  std::optional<TestClient> client;
};

TEST_F(Rules, EveryFiresAtMultiplesAndItsOrderIsTheRules) {
  make();
  EXPECT_EQ(client->run("every(100, function(e)\n  ckpt.save{ tag = 's' .. e.step }\nend)"),
            "rule 1 every(100, …)");
  EXPECT_EQ(client->others.at(0)["text"], "rule 1: every(100, …) registered\n");
  rank0->send_status(899);
  rank0->send_status(900);
  ASSERT_TRUE(ordered("ckpt.save"));
  const Order order = orders_with("ckpt.save").at(0);
  EXPECT_EQ(order.session, "rule 1");
  EXPECT_EQ(order.calls.at(0).arguments["tag"], "s900");
  EXPECT_EQ(order.source, "every(100, function(e)\n  ckpt.save{ tag = 's' .. e.step }\nend)");
  rank0->send_status(950);
  rank0->send_status(1210);
  ASSERT_TRUE(ordered("ckpt.save", 2));
  EXPECT_EQ(orders_with("ckpt.save").at(1).calls.at(0).arguments["tag"], "s1210");
  EXPECT_TRUE(eventually([&] { return rule(1)["runs"] == 2; }));  // counted when its function has ended
  EXPECT_EQ(client->run("rules[1]:off()"), "");
  EXPECT_EQ(rule(1)["state"], "off");
  rank0->send_status(1300);
  client->run("return 1");
  EXPECT_EQ(orders_with("ckpt.save").size(), 2U);
}

TEST_F(Rules, OnHearsEventsAndKeepsVariablesBetweenThem) {
  make();
  client->run(
      "best = math.huge\non('eval', function(e) if e.loss > 2 * best then run.pause('worse') end "
      "best = math.min(best, e.loss) end)");
  rank0->send_event("eval", {{"step", 900}, {"loss", 2.0}});
  rank0->send_event("eval", {{"step", 950}, {"loss", 1.0}});
  rank0->send_event("eval", {{"step", 1000}, {"loss", 2.5}});
  ASSERT_TRUE(ordered("run.pause"));
  EXPECT_EQ(orders_with("run.pause").at(0).calls.at(0).arguments["reason"], "worse");
  EXPECT_TRUE(eventually([&] { return rule(1)["runs"] == 3; }));
}

TEST_F(Rules, AtRunsAheadOfItsStepAndTooLateAtTheNext) {
  make();
  client->run("at(2000, function() optim.lr_scale = metrics.loss / 10 end)");
  rank0->send_event("metrics", log_line(1990, 4.0));
  rank0->send_status(1990);
  EXPECT_TRUE(rank0->orders().empty());
  rank0->send_status(1998);
  ASSERT_TRUE(ordered("optim.lr_scale"));
  EXPECT_EQ(rank0->orders().at(0).at_step, 2000);
  EXPECT_EQ(rank0->orders().at(0).changes.at(0).value, Value(0.4));
  EXPECT_TRUE(eventually([&] { return rule(1)["state"] == "done"; }));
  client->run("at(1500, function() log.every = 5 end)");
  ASSERT_TRUE(ordered("log.every"));
  EXPECT_TRUE(says("the run is at step 1998 already; it applies at the next step"));
}

TEST_F(Rules, AfterAndStopWhen) {
  make();
  client->run(
      "after{ seconds = 0.05, fn = function() log.every = 3 end } after{ steps = 10, function() eval.every = "
      "9 "
      "end } run.stop_when(function(m) return m['train/loss'] < 1 end)");
  ASSERT_TRUE(ordered("log.every"));
  EXPECT_EQ(orders_with("log.every").at(0).session, "rule 1");
  rank0->send_status(822);
  ASSERT_TRUE(ordered("eval.every"));
  rank0->send_event("metrics", log_line(830, 1.5));
  rank0->send_event("metrics", log_line(840, 0.5));
  ASSERT_TRUE(ordered("run.stop"));
  EXPECT_THAT(orders_with("run.stop").at(0).calls.at(0).arguments["reason"].get<std::string>(),
              HasSubstr("rule 3, run.stop_when(…)"));
  EXPECT_TRUE(eventually([&] { return rule(1)["state"] == "done"; }));
}

TEST_F(Rules, SurviveTheirSessionAndTheKillOfTheirProcess) {
  make();
  client->run("every(100, function() log.every = 10 + store.n end) store.n = 1");
  EXPECT_TRUE(ordered("run.store"));
  const auto before = children_of(rank0->console());
  client->close();
  client.emplace(rank0->socket());
  rank0->send_status(900);
  ASSERT_TRUE(ordered("log.every"));
  for (const pid_t child : children_of(rank0->console())) ::kill(child, SIGKILL);
  rank0->send_status(1000);
  ASSERT_TRUE(ordered("log.every", 2));
  EXPECT_EQ(orders_with("log.every").at(1).changes.at(0).value, Value(std::int64_t{11}));
  EXPECT_EQ(rule(1)["state"], "on");
}

TEST_F(Rules, SurviveANewConsoleWithoutDoingAnythingTwice) {
  make();
  client->run(
      "log.every = 7 every(100, function() eval.every = 5 end) at(5000, function() ckpt.save() end) "
      "at(900, function() ckpt.every = 3 end)");
  rank0->send_status(900);
  ASSERT_TRUE(ordered("eval.every") && ordered("ckpt.every"));
  EXPECT_TRUE(eventually([&] { return rule(3)["state"] == "done"; }));
  const Json reports = client->ask({{"op", "orders"}})["value"];
  client.reset();
  rank0->end();
  make({}, reports);
  rank0->send_status(1000);
  ASSERT_TRUE(ordered("eval.every"));
  rank0->send_status(4999);
  ASSERT_TRUE(ordered("ckpt.save"));
  EXPECT_EQ(orders_with("ckpt.save").at(0).at_step, 5000);
  EXPECT_TRUE(orders_with("log.every").empty()) << "what the chunk assigned isn't assigned again";
  EXPECT_TRUE(orders_with("ckpt.every").empty());
  EXPECT_EQ(rule(3)["state"], "done");
}

TEST_F(Rules, AnAtThatCountsFromNowKeepsItsStep) {
  make();
  rank0->send_status(1000);
  ASSERT_TRUE(eventually([&] { return client->eval("return run.step")["value"]["value"] == 1000; }));
  client->run("at(run.step + 50, function() ckpt.save() end)");
  EXPECT_EQ(rule(1)["text"], "at(1050, …)");
  client.reset();
  rank0->end();
  make();
  rank0->send_status(1020);
  client->run("every(7, print)");  // the rules' process starts, and runs that chunk at another step
  EXPECT_EQ(rule(1)["state"], "on");
  rank0->send_status(1049);
  ASSERT_TRUE(ordered("ckpt.save"));
  EXPECT_EQ(orders_with("ckpt.save").at(0).at_step, 1050);
  // A step that is another one in the rules' process than it was in the session.
  const Json outcome = client->eval("at(2000 + math.random(1, 1000000000), print)");
  EXPECT_NE(outcome["type"], "error") << outcome;
}

TEST_F(Rules, AChunkThatNoLongerRegistersItsRuleSwitchesItOff) {
  make();
  client->run("if log.every == 50 then every(100, print) end");
  client.reset();
  rank0->end();
  // The chunk runs again as soon as the new console begins: what it asks has to be another thing from then
  // on.
  make({}, Json::array(), {{"settings", {{"log.every", {{"value", 10}, {"source", "test"}}}}}});
  client->run("every(7, print)");
  EXPECT_TRUE(eventually([&] { return rule(1)["state"] == "off"; }));
  EXPECT_EQ(rule(1)["why"], "its chunk didn't register it when it ran again");
  EXPECT_EQ(rule(2)["state"], "on");
}

TEST_F(Rules, OneWhoseChunkIsNotBackYetWaitsForIt) {
  make();
  client->run(
      "if log.every ~= 50 then error('too early') end every(100, { on_error = 'stop' }, function(e) "
      "ckpt.save{ tag = 's' .. e.step } end)");
  client.reset();
  rank0->end();
  make({}, Json::array(), {{"settings", {{"log.every", {{"value", 10}, {"source", "test"}}}}}});
  client->run("every(100, function() end)");  // behind the chunk that fails
  rank0->send_status(900);
  ASSERT_TRUE(eventually([&] { return rule(2)["runs"] == 1; }));
  EXPECT_EQ(rule(1)["runs"], 0);
  EXPECT_EQ(rule(1)["state"], "on");
  rank0->send(SettingsUpdate{{{"log.every", {50, "test"}}}});
  EXPECT_TRUE(eventually([&] {
    rank0->send_event("metrics", log_line(905, 4.0));  // has the chunk run again
    return !orders_with("ckpt.save").empty();
  }));
  EXPECT_EQ(orders_with("ckpt.save").at(0).calls.at(0).arguments["tag"], "s900");
  EXPECT_TRUE(orders_with("run.stop").empty());
}

TEST_F(Rules, OneWhoseChunkIsNotBackYetLeavesTheOthersTheirEvents) {
  make();
  client->run("if log.every ~= 50 then error('too early') end on('order', print)");
  client.reset();
  rank0->end();
  make({}, Json::array(), {{"settings", {{"log.every", {{"value", 10}, {"source", "test"}}}}}});
  client->run("on('order', print)");  // behind the chunk that fails
  constexpr int kEvents = 70;
  for (int i = 1; i <= kEvents; ++i) {
    client->ask({{"op", "set"}, {"changes", {{"eval.every", i}}}});
    if (i % 10 == 0) {
      ASSERT_TRUE(eventually([&] { return rule(2)["runs"] == i; })) << i;
    }
  }
  EXPECT_TRUE(says("rule 1, on(\"order\", …), waits for its chunk to run again: events are left out"));
  EXPECT_EQ(published().find("rule 2"), std::string::npos) << published();
  EXPECT_EQ(published().find("rule 1"), published().rfind("rule 1")) << "said once";
  rank0->send(SettingsUpdate{{{"log.every", {50, "test"}}}});
  EXPECT_TRUE(eventually([&] {
    rank0->send_event("metrics", log_line(905, 4.0));  // has the chunk run again
    return rule(1)["runs"] == 64;
  }));
}

/// Killed by somebody else, as the kernel does where memory is short.
TEST_F(Rules, ARegistrationOutlivesTheKillOfItsProcess) {
  make();
  client->run("return 1");
  const auto is_new = [](const std::vector<pid_t>& before) {
    return [before](pid_t child) { return std::ranges::find(before, child) == before.end(); };
  };
  std::vector<pid_t> children;
  const auto is_lua = [](pid_t child) {  // not before: the console waits for a child to become its program
    std::error_code gone;
    return std::filesystem::read_symlink("/proc/" + std::to_string(child) + "/exe", gone).filename() ==
           "footplate-lua";
  };
  ASSERT_TRUE(eventually([&] {
    children = children_of(rank0->console());
    return children.size() == 2 && std::ranges::all_of(children, is_lua);
  }));
  for (const pid_t child : children) ::kill(child, SIGSTOP);  // the spare will be the rules' process
  const int chunk = client->send({{"op", "eval"}, {"code", "every(100, print) return 'there'"}});
  ::kill(children.front(), SIGCONT);
  ASSERT_TRUE(eventually([&] {
    const auto now = children_of(rank0->console());
    return std::ranges::any_of(now, is_new(children));  // so that one is in use
  }));
  ::kill(children.back(), SIGKILL);
  EXPECT_EQ(client->answer(chunk)["value"]["text"], "there");
  EXPECT_EQ(rule(1)["state"], "on");
}

TEST_F(Rules, WhatIsDueTogetherRunsAltogether) {
  make();
  client->run("for i = 1, 100 do every(100, function() end) end");
  rank0->send_status(900);
  EXPECT_TRUE(eventually([&] {
    return client->run("local n = 0 for _, r in ipairs(rules()) do n = n + r.runs end return n") == "100";
  }));
}

TEST_F(Rules, AnInterruptedRegistrationRegistersNothing) {
  make();
  rank0->hold_calls = true;
  client->run("every(100, { budget_ms = 60000 }, function() eval.now():wait() end)");
  rank0->send_status(900);
  ASSERT_TRUE(ordered("eval.now"));  // the rules' process waits for it
  const int chunk = client->send({{"op", "eval"}, {"code", "print('goes') every(50, print) log.every = 5"}});
  ASSERT_TRUE(client->hears("goes"));
  std::this_thread::sleep_for(std::chrono::milliseconds(200));  // so that its registration is on its way
  client->send({{"op", "interrupt"}});
  EXPECT_THAT(client->answer(chunk)["error"]["message"].get<std::string>(), HasSubstr("interrupted"));
  rank0->finish_call(orders_with("eval.now").at(0).id);
  ASSERT_TRUE(eventually([&] { return rule(1)["runs"] == 1; }));
  EXPECT_EQ(client->run("every(7, print) return 1"), "1");  // behind the interrupted one
  EXPECT_EQ(client->run("return #rules()"), "2");
}

TEST_F(Rules, ANewStartDropsPassedAtsAndArmsThoseAhead) {
  make();
  client->run("at(800, function() ckpt.every = 3 end) at(1500, function() eval.every = 4 end)");
  rank0->send_status(1500);
  ASSERT_TRUE(ordered("ckpt.every") && ordered("eval.every"));
  EXPECT_TRUE(eventually([&] { return rule(2)["state"] == "done"; }));
  client.reset();
  rank0->end();
  make({}, Json::array(), {{"run", {{"started", "2026-11-21T07:00:00Z"}}}});
  rank0->send_status(1000);
  EXPECT_TRUE(eventually([&] { return rule(2)["state"] == "on"; }));
  EXPECT_EQ(rule(1)["state"], "done");
  rank0->send_status(1499);
  ASSERT_TRUE(ordered("eval.every"));
  EXPECT_TRUE(orders_with("ckpt.every").empty());
}

TEST_F(Rules, WhatCalledOnTheWayToALoadDoesNotComeAgain) {
  make();
  client->run("at(1400, function() eval.every = 4 end) at(1450, function() eval.now() end)");
  client->run("at(1502, function() eval.now() end) after{ steps = 3, function() eval.now() end }");
  rank0->send_status(1500);
  ASSERT_TRUE(ordered("eval.every") && ordered("eval.now", 3));
  EXPECT_TRUE(eventually([&] { return rule(2)["state"] == "done"; }));
  client.reset();
  rank0->end();
  make({}, Json::array(), {{"run", {{"started", "2026-11-21T07:00:00Z"}, {"left", 1500}}}});
  rank0->send_status(1000);
  EXPECT_TRUE(eventually([&] { return rule(1)["state"] == "on"; })) << "it only sets something";
  EXPECT_EQ(rule(2)["state"], "done");
  EXPECT_EQ(rule(3)["state"], "on") << "ordered ahead of its step, which hadn't come";
  EXPECT_EQ(rule(4)["state"], "done");
  rank0->send_status(1499);
  ASSERT_TRUE(ordered("eval.every"));
  EXPECT_TRUE(orders_with("eval.now").empty());

  // And so it stays, where a crash takes the branch back once more.
  client.reset();
  rank0->end();
  make({}, Json::array(), {{"run", {{"started", "2026-11-21T08:00:00Z"}}}});
  rank0->send_status(1200);
  EXPECT_TRUE(eventually([&] { return rule(1)["state"] == "on"; }));
  EXPECT_EQ(rule(2)["state"], "done");
  rank0->send_status(1600);
  ASSERT_TRUE(ordered("eval.now"));
  EXPECT_EQ(orders_with("eval.now").size(), 1U);
}

TEST_F(Rules, ARunawayHandlerIsEndedAndTheOthersGoOn) {
  make();
  client->run("every(100, { budget_ms = 50 }, function() while true do end end)");
  client->run("every(100, { budget_ms = 50 }, function() return ('a'):rep(100000):find('a-a-a-a-b') end)");
  client->run("every(100, function() log.every = 20 end)");
  for (int i = 1; i <= 3; ++i) {
    rank0->send_status(800 + 100 * i);
    ASSERT_TRUE(
        eventually([&] { return orders_with("log.every").size() >= static_cast<std::size_t>(i); }, 20))
        << i;
  }
  EXPECT_TRUE(says("stopped: a rule may run for budget_ms = 50"));
  EXPECT_TRUE(says("the chunk's process was killed: a rule may run for 0.05 s"));
  EXPECT_TRUE(says("rule 1, every(100, …), is off: three errors in a row"));
  EXPECT_TRUE(says("rule 2, every(100, …), is off: three errors in a row"));
  EXPECT_EQ(rule(3)["state"], "on");
}

TEST_F(Rules, AnErrorPausesOrStopsWhereTheRuleSaysSo) {
  make();
  client->run("every(100, { on_error = 'pause' }, function() error('boom') end)");
  rank0->send_status(900);
  ASSERT_TRUE(ordered("run.pause"));
  EXPECT_THAT(orders_with("run.pause").at(0).calls.at(0).arguments["reason"].get<std::string>(),
              HasSubstr("rule 1, every(100, …), failed at step 900: "));
  client->run("on('eval', { on_error = 'stop' }, function() return nothing.here end)");
  rank0->send_event("eval", {{"step", 900}, {"loss", 2.0}});
  ASSERT_TRUE(ordered("run.stop"));
  EXPECT_THAT(orders_with("run.stop").at(0).calls.at(0).arguments["error"].get<std::string>(),
              HasSubstr("A rule sees what its own chunk defines"));
}

TEST_F(Rules, MistakesAreErrorsOfTheChunkAndRegisterNothing) {
  make();
  EXPECT_EQ(client->run("mine = 5 every(mine, print)"), "");
  EXPECT_EQ(rule(1)["text"], "every(5, …)");
  EXPECT_THAT(client->run("every(mine, print)"),
              HasSubstr("failed there: "));  // mine is this session's alone
  EXPECT_THAT(client->run("every(10, print) error('no')"), HasSubstr("no"));
  EXPECT_THAT(client->run("run.wait{ seconds = 0 } every(10, print)"),
              HasSubstr("before a chunk's first wait"));
  EXPECT_THAT(client->run("on('evl', print)"), HasSubstr("did you mean eval?"));
  EXPECT_THAT(client->run("every(10, { sync = true }, print)"), HasSubstr("sync = true is for"));
  rank0->refuse_orders = true;
  EXPECT_THAT(client->run("every(10, print) log.every = 3"), HasSubstr("refused"));
  EXPECT_EQ(rule(2)["state"], "off") << "taken back with its chunk's order";
  rank0->refuse_orders = false;
  EXPECT_EQ(client->run("return #rules()"), "2");
  EXPECT_EQ(client->run("local n = 0 for number in pairs(rules) do n = n + number end return n"), "3");
}

TEST_F(Rules, TrainingWaitsForASyncRuleOnly) {
  make();
  rank0->send_event("metrics", log_line(820, 2.0), 1);
  ASSERT_TRUE(eventually([&] { return rank0->lines("release").size() == 1; }));
  client->run(
      "on('log', { sync = true, budget_ms = 40 }, function(m) if m['train/loss'] > 5 then optim.lr_scale = "
      "0.5 "
      "end end)");
  ASSERT_TRUE(eventually([&] { return !rank0->lines("sync").empty(); }));
  EXPECT_EQ(rank0->lines("sync").back()["topics"], Json({{"metrics", 40.0}}));
  rank0->send_event("metrics", log_line(830, 2.0), 2);
  ASSERT_TRUE(eventually([&] { return rank0->lines("release").size() == 2; }));
  EXPECT_EQ(rank0->lines("release").back()["hold"], 2);
  rank0->send_event("metrics", log_line(840, 9.0), 3);
  ASSERT_TRUE(eventually([&] { return rank0->lines("release").size() == 3; }));
  EXPECT_TRUE(ordered("optim.lr_scale")) << "its order is on its way before training goes on";
  client->run("rules[1]:off()");
  ASSERT_TRUE(eventually([&] { return rank0->lines("sync").back()["topics"].empty(); }));
}

TEST_F(Rules, StoreIsEverybodysAndComesBackWithAHello) {
  make({}, Json::array(), {{"store", {{"best", 1.5}}}});
  EXPECT_EQ(client->run("return store.best"), "1.5");
  EXPECT_EQ(client->run(
                "store.seen = { 1, 2 } store.seen = { 3 } store.best = nil return store.seen[1], store.best"),
            "3\nnil");
  TestClient other(rank0->socket());
  EXPECT_EQ(other.run("return store.seen[1], store.best"), "3\nnil");
  EXPECT_EQ(rank0->orders().size(), 1U);
  EXPECT_EQ(rank0->orders().at(0).calls.size(), 2U);
  EXPECT_THAT(other.run("store.big = ('x'):rep(70000)"), HasSubstr("it may have 65536"));
}

}  // namespace
}  // namespace footplate::test
