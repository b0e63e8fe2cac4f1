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
    EXPECT_EQ(help_text("").find("\n  " + function.line()) != std::string::npos, function.in_overview)
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
