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
