// Configs and chunks read and assign settings by the same words, over the same core.
#include "console/lua/config/config.h"

#include <gmock/gmock.h>

#include "fake_console.h"
#include "test_schema.h"

namespace footplate::test {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

Result<Settings> evaluate(const std::string& text, const ConfigLimits& limits = {}) {
  static const Schema schema = small_schema();
  return evaluate_config_text(text, "c.lua", schema, Settings::defaults(schema), limits);
}

std::string error_of(const std::string& text, const ConfigLimits& limits = {}) {
  const auto settings = evaluate(text, limits);
  EXPECT_FALSE(settings) << text << " went through";
  return settings ? "" : settings.error().message;
}

TEST(LuaConfig, GroupsAreFieldsAndSourcesHaveTheLine) {
  const auto settings = evaluate("log.every = 10\nset{ optim = { lr_scale = 0.5 } }\n");
  ASSERT_TRUE(settings) << settings.error().message;
  EXPECT_EQ(settings->value("log.every"), Value(std::int64_t{10}));
  EXPECT_EQ(settings->source("log.every"), "c.lua:1");
  EXPECT_EQ(settings->source("optim.lr_scale"), "c.lua:2");
}

TEST(LuaConfig, AListIsACopyThatCanBeChanged) {
  const auto settings = evaluate("local b = optim.betas b[1] = 0.5 optim.betas[2] = 0.1 optim.betas = b");
  ASSERT_TRUE(settings) << settings.error().message;
  EXPECT_EQ(std::get<std::vector<double>>(settings->value("optim.betas")).front(), 0.5);
  EXPECT_NE(std::get<std::vector<double>>(settings->value("optim.betas")).back(), 0.1);
}

TEST(LuaConfig, MistakesAreToldWithTheirLine) {
  EXPECT_THAT(error_of("\nlog.evry = 5"), StartsWith("c.lua:2: unknown setting 'log.evry'; did you mean"));
  EXPECT_THAT(error_of("log = 5"), HasSubstr("log is a group of settings and can't be assigned"));
  EXPECT_THAT(error_of("x = 5"), HasSubstr("a name of your own needs 'local x = …'"));
  EXPECT_THAT(error_of("log.every = print"), HasSubstr("unknown name 'print'; a config only assigns"));
  EXPECT_THAT(error_of("log.every = tostring"), HasSubstr("log.every can't be a function"));
  EXPECT_THAT(error_of("optim.betas = { 0.9, { 1 } }"), HasSubstr("can't be a table inside a list"));
  EXPECT_THAT(error_of("optim.betas = { 0.9, x = 1 }"), HasSubstr("can't be a table with named fields"));
  EXPECT_THAT(error_of("set{ log = { 5 } }"), HasSubstr("names of settings are words, got a number in log"));
  EXPECT_THAT(error_of("set(5)"), HasSubstr("set takes a table: set{ train = { steps = 100 } }"));
  EXPECT_THAT(error_of("eval.now()"), HasSubstr("eval.now is an action; a config only assigns settings"));
}

TEST(LuaConfig, OnlyWhatTheHookCanInterruptIsThere) {
  for (const char* name : {"pcall", "load", "setmetatable", "getmetatable", "rawset", "print", "io",
                           "coroutine", "utf8", "_G", "collectgarbage"})
    EXPECT_THAT(error_of(std::string("local x = ") + name), HasSubstr("unknown")) << name;
  for (const char* code :
       {"string.rep", "string.find", "('x').rep", "('x').gsub", "table.move", "table.sort", "math.random"})
    EXPECT_TRUE(evaluate(std::string("assert(") + code + " == nil)")) << code;
}

TEST(LuaConfig, LimitsHold) {
  ConfigLimits limits;
  limits.instructions = 1'000'000;
  EXPECT_THAT(error_of("while true do end", limits), HasSubstr("still running after 1 million instructions"));
  EXPECT_THAT(error_of("local s = 'x' while true do s = s .. s end"),
              HasSubstr("more than 16 MiB of memory"));
}

/// What a config says of a name or a value, the prompt says too.
TEST(LuaConfig, ValuesAreCheckedAsAtThePrompt) {
  for (const char* code : {"log.every = -1", "log.every = 2.5", "log.every = 'often'", "log.evry = 1"}) {
    FakeConsole console;
    const auto outcome = console.run(code);
    ASSERT_TRUE(outcome.error) << code;
    const std::string message = outcome.error->message;
    EXPECT_EQ(error_of(code).substr(std::string("c.lua:1: ").size()),
              message.substr(std::string("chunk:1: ").size()));
  }
}

}  // namespace
}  // namespace footplate::test
