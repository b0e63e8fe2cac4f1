// What complete and help answer, and what counts as an unfinished chunk.
#include "console/lua/reference/completion.h"

#include <gmock/gmock.h>

#include "console/lua/config/incomplete.h"
#include "console/lua/reference/columns.h"
#include "console/lua/reference/function_docs.h"
#include "console/lua/reference/help.h"
#include "test_schema.h"

namespace footplate::test {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

Json complete(const std::string& code) {
  const Schema schema = small_schema();
  return completions(schema, Settings::defaults(schema), compiled_function_docs(), code);
}

std::vector<std::string> texts(const std::string& code) {
  std::vector<std::string> found;
  const Json answer = complete(code);
  for (const auto& item : answer["items"]) found.push_back(item["text"]);
  return found;
}

TEST(Columns, AreAsWideAsTheirLongestTextWithinBounds) {
  EXPECT_EQ(in_columns({}), "");
  EXPECT_EQ(in_columns({{"a", "1", "one"}, {"long.name", "22", "two"}}),
            "a          1   one\nlong.name  22  two");
  const std::string wide(40, 'w');
  EXPECT_EQ(in_columns({{wide, "x"}, {"b", "y"}}), wide + "  x\nb" + std::string(33, ' ') + "y");
}

TEST(Completion, GroupsComeFirst) {
  EXPECT_THAT(texts("lo"), ElementsAre("load", "log."));
  EXPECT_THAT(texts("optim."),
              ElementsAre("optim.betas", "optim.lr", "optim.lr_scale", "optim.weight_decay"));
}

TEST(Completion, StartsWhereTheNameBegins) {
  const Json answer = complete("return 1 + log.ev");
  EXPECT_EQ(answer["start"], 11);
  EXPECT_EQ(answer["items"][0]["text"], "log.every");
  EXPECT_EQ(answer["items"][0]["note"], "50 steps · help of log.every");
}

TEST(Completion, ActionsFunctionsAndLua) {
  EXPECT_THAT(texts("ckpt.s"), ElementsAre("ckpt.save"));
  EXPECT_THAT(texts("und"), ElementsAre("undo"));
  EXPECT_THAT(texts("run.w"), ElementsAre("run.wait"));
  EXPECT_THAT(texts("ranks.s"), ElementsAre("ranks.stacks"));
  EXPECT_THAT(texts("string.gm"), ElementsAre("string.gmatch"));
}

TEST(Completion, FieldsOfATable) {
  EXPECT_THAT(texts("eval.now{ "), Contains("batches = "));
  EXPECT_THAT(texts("eval.now{ batches = 5 } "), Not(Contains("batches = ")));
  EXPECT_THAT(texts("optim.set{ lr_scale = 0.5, wei"), ElementsAre("weight_decay = "));
}

TEST(Completion, MethodsOfAHandle) {
  EXPECT_THAT(texts("eval.now():w"), ElementsAre("wait()"));
}

TEST(Completion, NamesWhereAStringIsOneOfSome) {
  Schema schema = small_schema();
  for (auto& spec : schema.settings)
    if (spec.name == "sched.kind") spec.choices = {"constant", "cosine", "linear"};
  const CompletionNames names{
      {"eval/loss", "perf/step_ms", "train/loss"}, {"good", "before-spike"}, {"best_lr"}};
  const auto found = [&](const std::string& code) {
    std::vector<std::string> found;
    for (const auto& item :
         complete(schema, Settings::defaults(schema), compiled_function_docs(), code, names).items)
      found.push_back(item.text);
    return found;
  };
  EXPECT_THAT(found("sched.kind = \"co"), ElementsAre("constant", "cosine"));
  EXPECT_THAT(found("if sched.kind == 'l"), ElementsAre("linear"));
  EXPECT_THAT(found("set{ sched = { kind = \"l"), ElementsAre("linear"));
  EXPECT_THAT(found("sched.set{ kind = \"l"), ElementsAre("linear"));
  EXPECT_THAT(found("ckpt.load(\"g"), ElementsAre("good"));
  EXPECT_THAT(found("ckpt.load{ ref = \"be"), ElementsAre("before-spike", "best"));
  EXPECT_THAT(found("run.wait{ event = \"ev"), ElementsAre("eval"));
  EXPECT_THAT(found("on(\"st"), ElementsAre("start", "stop"));
  EXPECT_THAT(found("metrics[\"train"), ElementsAre("train/loss"));
  EXPECT_THAT(found("try{ metric = \"p"), ElementsAre("perf/step_ms"));
  EXPECT_THAT(found("return metrics.l"), ElementsAre("metrics.loss"));
  EXPECT_THAT(found("every(9, function(m) if m.s"), ElementsAre("m.step_ms"));
  EXPECT_THAT(found("store.b"), ElementsAre("store.best_lr"));
  EXPECT_THAT(found("help(\"log.ev"), ElementsAre("log.every"));
  EXPECT_THAT(found("run.wait{ ev"), Contains("event = "));
  EXPECT_THAT(found("try{ set = { optim = { wei"), ElementsAre("weight_decay = "));
  EXPECT_THAT(found("at(900, { opt"), Contains("optim = { "));
  EXPECT_THAT(found("x = [[ log.ev"), IsEmpty());
}

TEST(Completion, NothingInTextAndComments) {
  EXPECT_THAT(texts("x = 'log.e"), IsEmpty());
  EXPECT_THAT(texts("-- log.e"), IsEmpty());
  EXPECT_THAT(texts("x = 'a' .. log.e"), ElementsAre("log.every"));
  EXPECT_THAT(texts("x = 'it''s'\nlog.e"), ElementsAre("log.every"));
}

TEST(Completion, AnyBytes) {
  std::string all;
  for (int byte = 0; byte < 256; ++byte) all += static_cast<char>(byte);
  for (std::size_t length = 0; length <= all.size(); ++length) complete(all.substr(0, length));
}

TEST(Help, KnowsEveryTopic) {
  const Schema schema = small_schema();
  const Settings settings = Settings::defaults(schema);
  const auto help_text = [&](const std::string& name) {
    return footplate::help_text(schema, settings, compiled_function_docs(), name);
  };
  EXPECT_GT(compiled_function_docs().size(), 30U);
  for (const FunctionDoc& function : compiled_function_docs()) {
    EXPECT_STRNE(function.help, "") << function.name;
    EXPECT_THAT(help_text(function.name), HasSubstr(function.line()));
    EXPECT_EQ(help_text("all").find("\n  " + function.line()) != std::string::npos, function.in_overview)
        << function.name;
  }
  EXPECT_THAT(help_text("assert"), HasSubstr("assert: of Lua 5.4"));
  EXPECT_THAT(help_text("log.every"), HasSubstr("log.every = 50 steps"));
  for (const char* name : {"NCCL_BUFFSIZE", "nccl.buffsize"})
    EXPECT_THAT(help_text(name), AllOf(HasSubstr("nccl.buffer_bytes = 0 bytes"),
                                       HasSubstr("applies at the next start · NCCL's NCCL_BUFFSIZE")));
  EXPECT_THAT(help_text("NCCL_TIMEOUT"), HasSubstr("comm.timeout_s"));
  EXPECT_THAT(help_text("log.evry"), HasSubstr("did you mean log.every?"));
}

TEST(Help, FirstOneFitsATerminalAndItsExamplesAreTrue) {
  const Schema schema = small_schema();
  const std::string first = help_text(schema, Settings::defaults(schema), compiled_function_docs(), "");
  std::size_t rows = 0;
  for (std::size_t start = 0; start < first.size(); ++rows) {
    const std::size_t end = std::min(first.find('\n', start), first.size());
    const auto row = first.substr(start, end - start);
    const auto characters = std::count_if(row.begin(), row.end(), [](char c) { return (c & 0xc0) != 0x80; });
    EXPECT_LT(characters, 80) << row;
    start = end + 1;
  }
  EXPECT_LE(rows, 22U);
  for (const char* name :
       {"status", "ranks", "metrics", "log.every", "settings", "undo", "orders", "eval.now", "ckpt.save",
        "try", "at", "every", "run.pause", "run.resume", "run.stop"}) {
    EXPECT_THAT(first, HasSubstr(name));
    EXPECT_THAT(help_text(schema, Settings::defaults(schema), compiled_function_docs(), name),
                Not(HasSubstr("unknown")))
        << name;
  }
}

TEST(Help, SearchesWhereThereIsNoSuchName) {
  const Schema schema = small_schema();
  const auto of = [&](const char* name) {
    return help_text(schema, Settings::defaults(schema), compiled_function_docs(), name);
  };
  EXPECT_THAT(of("pend"), AllOf(HasSubstr("no name is 'pend'"), HasSubstr("settings")));
  EXPECT_THAT(of("Decay"), HasSubstr("optim.weight_decay  help of optim.weight_decay"));
  EXPECT_THAT(of("zzzz"), HasSubstr("unknown setting 'zzzz'"));
}

TEST(Incomplete, GoesOnWhereLuaMeetsTheEnd) {
  for (const char* text : {"for i = 1, 3 do", "1 +", "f(", "x = {", "if a then", "x = [[", "--[[",
                           "function f()", "a.", "= 1 +"})
    EXPECT_TRUE(is_incomplete_chunk(text)) << text;
}

TEST(Incomplete, EndsWhereMoreCanNotHelp) {
  for (const char* text : {"", "1 + 1", "x = 1", "return", "x = 'abc", "x = \"abc", "x = = 3", "end",
                           "-- words", "a, b", "f()", "=a"})
    EXPECT_FALSE(is_incomplete_chunk(text)) << text;
}

}  // namespace
}  // namespace footplate::test
