#include "console/host/run/stack_questions.h"

#include <gtest/gtest.h>

namespace footplate::host {
namespace {

TEST(StackQuestions, WhoAsksForTheSameIsAnsweredTogether) {
  StackQuestions questions;
  const auto now = StackQuestions::Clock::now();
  int sent = 0;
  const auto send = [&] { ++sent; };
  const auto first = questions.ask(3, now, send);
  const auto second = questions.ask(3, now + std::chrono::seconds(1), send);
  const auto other = questions.ask(StackQuestions::kAllRanks, now, send);
  EXPECT_EQ(sent, 2);
  questions.answer({{"rank", 3}, {"text", "main"}});
  EXPECT_EQ((*first)["text"], "main");
  EXPECT_EQ(first, second);
  EXPECT_TRUE(other->is_null());
  questions.answer({{"text", "all"}});
  EXPECT_EQ((*other)["text"], "all");
}

TEST(StackQuestions, IsAskedAgainOnceItIsAnsweredOrTooOld) {
  StackQuestions questions;
  const auto now = StackQuestions::Clock::now();
  int sent = 0;
  const auto send = [&] { ++sent; };
  questions.ask(1, now, send);
  questions.ask(1, now + 2 * StackQuestions::kAnswered, send);
  EXPECT_EQ(sent, 2);
  questions.answer({{"rank", 1}});
  questions.ask(1, now, send);
  EXPECT_EQ(sent, 3);
  questions.answer({{"rank", 7}});  // nobody asked
}

}  // namespace
}  // namespace footplate::host
