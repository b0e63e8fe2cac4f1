#include "console/lua/core/syntax_advice.h"

#include <gmock/gmock.h>

namespace footplate::lua {
namespace {

using ::testing::HasSubstr;

TEST(SyntaxAdvice, CompoundAssignmentsAreWrittenOut) {
  EXPECT_EQ(with_syntax_advice("c:1: syntax error near '+'", "log.every += 5"),
            "c:1: syntax error near '+'; Lua has no '+=': log.every = log.every + 5");
  EXPECT_THAT(with_syntax_advice("c:2: syntax error near '*'", "x = 1\noptim.lr_scale *= 0.5  -- half"),
              HasSubstr("optim.lr_scale = optim.lr_scale * 0.5"));
}

TEST(SyntaxAdvice, CommasThatAreTooManyOrTooFewAreNamedByTheirLine) {
  EXPECT_THAT(with_syntax_advice("c:2: unexpected symbol near '='", "optim.lr = 1e-3,\nlog.every = 5"),
              HasSubstr("; line 1 ends with a comma"));
  EXPECT_THAT(with_syntax_advice("c:4: '}' expected (to close '{' at line 1) near 'batch_size'",
                                 "train = {\n  steps = 5\n\n  batch_size = 3,\n}"),
              HasSubstr("; line 2 may lack a comma at its end"));
}

TEST(SyntaxAdvice, OtherFormatsAreCalledByTheirName) {
  EXPECT_THAT(with_syntax_advice("c:1: unexpected symbol near '{'", R"({"train": {"steps": 5}})"),
              HasSubstr("this looks like JSON"));
  EXPECT_THAT(with_syntax_advice("c:2: function arguments expected near ':'", "train:\n  steps: 5\n"),
              HasSubstr("this looks like YAML"));
  EXPECT_THAT(with_syntax_advice("c:1: unexpected symbol near '['", "[train]\nsteps = 5\n"),
              HasSubstr("this looks like TOML"));
}

TEST(SyntaxAdvice, OperatorsOfOtherLanguagesAreTranslated) {
  EXPECT_THAT(with_syntax_advice("c:1: unexpected symbol near '!'", "if a != b then end"),
              HasSubstr("'!=' as ~="));
  EXPECT_THAT(with_syntax_advice("c:1: unexpected symbol near '&'", "if a && b then end"),
              HasSubstr("'&&' as and"));
}

TEST(SyntaxAdvice, WhatOtherLanguagesWriteIsTranslated) {
  struct Line {
    const char* message;
    const char* code;
    const char* advice;
  };
  for (const auto& [message, code, advice] : {
           Line{"c:1: unexpected symbol near '['", "optim.betas = [0.9, 0.95]",
                "; a list is written { 0.9, 0.95 }"},
           Line{"c:1: unexpected symbol near '#'", "# note", "; a comment begins with --"},
           Line{"c:1: unexpected symbol near '//'", "// note", "; a comment begins with --"},
           Line{"c:1: malformed number near '2_'", "train.steps = 2_000", "; a number has no '_'"},
           Line{"c:1: malformed number near '8h'", "run.time_limit = 8h", "in quotes: \"8h\""},
           Line{"c:1: syntax error near '=='", "train.steps == 5", "; == compares; one = assigns"},
           Line{"c:1: syntax error near 'a'", "let a = 5", "local x = 5"},
           Line{"c:1: unexpected symbol near '<\\226>'", "sched.kind = \u201ccosine\u201d", "typographic"},
           Line{"c:1: <name> expected near '5'", "set{ train = { steps: 5 } }",
                "in { } Lua writes steps = 5"},
           Line{"c:1: '}' expected near '='", "if (x > 3) { log.every = 1 }", "if … then … end"},
           Line{"c:1: syntax error near 'os'", "import os", "nothing is imported"},
           Line{"c:1: unexpected symbol near '$'", "train.steps = $STEPS", "KEY=$VALUE"},
           Line{"c:1: unfinished string near ''cosine'", "sched.kind = 'cosine", "isn't closed"},
           Line{"c:1: syntax error near 'every'", "log every 10", "; write log.every = 10"},
       })
    EXPECT_THAT(with_syntax_advice(message, code), HasSubstr(advice)) << code;
}

TEST(SyntaxAdvice, ASecondValueForOneNameIsFound) {
  EXPECT_THAT(surplus_value("-- x\ntrain.steps = 2,000"),
              HasSubstr("2: train.steps = 2,000 gives two values"));
  EXPECT_THAT(surplus_value("local betas = 0.9, 0.95"), HasSubstr("1: betas = 0.9, 0.95"));
  for (const char* code :
       {"set{ train = {\n  steps = 5, batch_size = 3,\n} }", "local a, b = 1, 2", "f(a,\nb = 1, 2)",
        "x = '1, 2'", "optim.betas = { 0.9, 0.95 }", "x = f(1, 2)", "log.every = 5 -- 1, 2"})
    EXPECT_EQ(surplus_value(code), "") << code;
}

TEST(SyntaxAdvice, WhatIsNotKnownStaysAsItIs) {
  for (const char* message :
       {"no line", "c:9: too far", "c:0: no such line", "c:1: unexpected symbol near 'x'"})
    EXPECT_EQ(with_syntax_advice(message, "y x"), message);
  const std::string long_line(100'000, '+');
  EXPECT_EQ(with_syntax_advice("c:1: unexpected symbol near '+'", long_line),
            "c:1: unexpected symbol near '+'");
  EXPECT_EQ(with_syntax_advice("c:1: x", ""), "c:1: x");
}

}  // namespace
}  // namespace footplate::lua
