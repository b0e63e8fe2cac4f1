// What a session's Lua does with rules and store: what it asks of the console, and what it refuses.

#include <gmock/gmock.h>

#include "fake_console.h"

namespace footplate::test {
namespace {

using testing::HasSubstr;

class LuaRules : public LuaChunks {};

TEST_F(LuaRules, SpecsSayWhatTheConsoleHasToKnow) {
  text_of(
      "every(1000, print)\nafter{ minutes = 2, fn = print }\nafter{ steps = 7, budget_ms = 5, function() end "
      "}\n"
      "on('eval', { on_error = 'pause' }, function(e)\n  print(e)\nend)\nat(9, print) run.stop_when(print)\n"
      "on('log', function() end, { sync = true })");
  ASSERT_EQ(console.rules.size(), 7U);
  EXPECT_EQ(console.rules[0]["steps"], 1000);
  EXPECT_EQ(console.rules[0]["budget_ms"], 2000.0);
  EXPECT_EQ(console.rules[1]["seconds"], 120.0);
  EXPECT_EQ(console.rules[2]["budget_ms"], 5.0);
  EXPECT_EQ(console.rules[3]["on_error"], "pause");
  EXPECT_EQ(console.rules[3]["source"], "on('eval', { on_error = 'pause' }, function(e)\n  print(e)\nend)");
  EXPECT_EQ(console.rules[3]["line"], 4);
  EXPECT_EQ(console.rules[4]["kind"], "at");
  EXPECT_EQ(console.rules[5]["kind"], "stop_when");
  EXPECT_EQ(console.rules[6]["budget_ms"], 50.0);
}

TEST_F(LuaRules, RulesComeBeforeTheChunksOrderAndAreTakenBackWithIt) {
  text_of("log.every = 3 every(10, print)");
  EXPECT_EQ(console.asked, (std::vector<std::string>{"wait_rules", "order", "wait_order"}));
  console.refuse_with = "no";
  EXPECT_THAT(error_of("log.every = 4 every(10, print)"), HasSubstr("refused"));
  EXPECT_EQ(console.rules.at(1)["state"], "off");
  EXPECT_EQ(text_of("every(10, print):off()"), "");
  EXPECT_EQ(console.rules.size(), 2U) << "taken back before its chunk's end";
  EXPECT_EQ(text_of("r = every(10, print) return r.state"), "staged");
  text_of("r:off()");
  EXPECT_EQ(text_of("return r.state, r.number, r"), "off\n3\nrule 3 every(10, …)");
}

/// m.loss is what metrics.loss is.
TEST_F(LuaRules, MetricsAnswerToShortNames) {
  const Json latest = {{"step", 12},        {"train/loss", 2.5}, {"eval/loss", 1.5},
                       {"eval/best", 1.25}, {"perf/x", 1},       {"mem/x", 2}};
  FakeConsole rules(SessionKind::rules);
  const auto registered =
      rules.session().register_chunk(7,
                                     "on('log', function(m) store.seen = { m.loss, m['train/loss'], m.best, "
                                     "m.step, m.x or -1, m.none or -2 } end)",
                                     "rule");
  ASSERT_FALSE(registered.outcome.error) << registered.outcome.error->message;
  HandleRule rule;
  rule.chunk = 7;
  rule.index = registered.rules.at(0).index;
  rule.event = latest;
  rule.of_metrics = true;
  const auto handled = rules.session().handle(rule);
  ASSERT_FALSE(handled.outcome.error) << handled.outcome.error->message;
  EXPECT_EQ(rules.store["seen"], Json({2.5, 2.5, 1.25, 12, -1, -2}));
  console.metrics = latest;
  EXPECT_EQ(text_of("return metrics.loss, metrics.best"), "2.5\n1.25");
  EXPECT_THAT(error_of("return metrics.x"), HasSubstr("unknown metric 'x'"));
}

TEST_F(LuaRules, StoreSetsSeveralAndKeepsThem) {
  text_of("store.set{ a = 1, b = { 2 }, keep = true } store.c = 3");
  const auto& calls = console.orders.back().calls;
  ASSERT_EQ(calls.size(), 3U);
  for (const Call& call : calls) EXPECT_EQ(call.flag("keep"), call.text("name") != "c") << call.text("name");
  EXPECT_EQ(console.run("return store").value, Json({{"a", 1}, {"b", {2}}, {"c", 3}}))
      << "what is footplate's own isn't shown";
  EXPECT_THAT(error_of("store.set{ a = 1, keep = 5 }"), HasSubstr("keep is true or false"));
  EXPECT_THAT(error_of("store.set = 5"), HasSubstr("footplate's own; take another name"));
  EXPECT_THAT(error_of("store['@keep'] = 5"), HasSubstr("footplate's own; take another name"));
  EXPECT_THAT(error_of("branches{ steps = 5, { log = { every = 3 } } }"),
              HasSubstr("footplate run CONFIG --script"));
}

TEST_F(LuaRules, AnEmptyListIsDataAsAFullOneIs) {
  EXPECT_EQ(console.run("return rules()").value, Json::array());
  EXPECT_EQ(console.run("return { rules = rules(), orders = orders() }").value,
            Json({{"rules", Json::array()}, {"orders", Json::array()}}));
  EXPECT_EQ(console.run("return setmetatable({}, { x = 1 })").value, Json::object());
  EXPECT_EQ(console.run("return { a = setmetatable({}, {}), b = 1 }").value,
            Json({{"a", Json::object()}, {"b", 1}}));
}

TEST_F(LuaRules, MistakesTeach) {
  EXPECT_THAT(error_of("every(0, print)"), HasSubstr("every has to be a number above 0"));
  EXPECT_THAT(error_of("every(2.5, print)"), HasSubstr("a whole number of steps"));
  EXPECT_THAT(error_of("every(5)"), HasSubstr("a rule needs a function, as in every(1000"));
  EXPECT_THAT(error_of("every(5, 'x')"), HasSubstr("a rule needs a function"));
  EXPECT_THAT(error_of("on('evals', print)"), HasSubstr("did you mean eval?"));
  EXPECT_THAT(error_of("on('eval', { budgt_ms = 5 }, print)"), HasSubstr("did you mean budget_ms?"));
  EXPECT_THAT(error_of("on('eval', { on_error = 'die' }, print)"),
              HasSubstr("\"warn\", \"pause\" or \"stop\""));
  EXPECT_THAT(error_of("after{ minutes = 1, seconds = 1 }"), HasSubstr("one of minutes, seconds and steps"));
  EXPECT_THAT(error_of("local t = { seconds = 1 } for i = 1, 100000 do t[i] = print end after(t)"),
              HasSubstr("after takes one function"));
  EXPECT_THAT(error_of("at(5, function() end, 7)"), HasSubstr("a rule needs a function"));
  EXPECT_THAT(error_of("return rules[7]"), HasSubstr("there is no rule 7"));
  EXPECT_THAT(error_of("run.wait{ step = 1, seconds = 2 }"), HasSubstr("one of step, event and seconds"));
  EXPECT_TRUE(console.rules.empty());
}

TEST_F(LuaRules, StoreIsStagedAndTravelsInTheOrder) {
  EXPECT_EQ(text_of("store.best = 2 store.best = 1.5 return store.best"), "1.5");
  ASSERT_EQ(console.orders.size(), 1U);
  ASSERT_EQ(console.orders[0].calls.size(), 1U);
  EXPECT_EQ(console.orders[0].calls[0].arguments["value"], "1.5");
  EXPECT_EQ(text_of("return store.best, store.none"), "1.5\nnil");
  EXPECT_EQ(text_of("local n = 0 for _ in pairs(store) do n = n + 1 end return n"), "1");
  EXPECT_THAT(error_of("store.f = print"), HasSubstr("a function can't be kept"));
  EXPECT_THAT(error_of("store.x = ('x'):rep(66000)"), HasSubstr("it may have 65536"));
  EXPECT_EQ(text_of("store.best = nil return store.best"), "");
  EXPECT_TRUE(console.store.empty());
}

}  // namespace
}  // namespace footplate::test
