#include "console/host/run/rank_questions.h"

#include <gtest/gtest.h>

namespace footplate::host {
namespace {

TEST(RankQuestions, WhoAsksForTheSameIsAnsweredTogether) {
  RankQuestions questions;
  const auto now = RankQuestions::Clock::now();
  int sent = 0;
  const auto send = [&] { ++sent; };
  const auto first = questions.ask({"stacks", 3}, now, send);
  const auto second = questions.ask({"stacks", 3}, now + std::chrono::seconds(1), send);
  const auto other = questions.ask({"stacks", std::nullopt}, now, send);
  const auto counts = questions.ask({"comm", std::nullopt}, now, send);
  EXPECT_EQ(sent, 3);
  questions.answer({"stacks", 3, {{"text", "main"}}});
  EXPECT_EQ((*first)["text"], "main");
  EXPECT_EQ(first, second);
  EXPECT_TRUE(other->is_null());
  questions.answer({"stacks", std::nullopt, {{"text", "all"}}});
  EXPECT_EQ((*other)["text"], "all");
  EXPECT_TRUE(counts->is_null());
  questions.answer({"comm", std::nullopt, {{"text", "counts"}}});
  EXPECT_EQ((*counts)["text"], "counts");
}

TEST(RankQuestions, IsAskedAgainOnceItIsAnsweredOrTooOld) {
  RankQuestions questions;
  const auto now = RankQuestions::Clock::now();
  int sent = 0;
  const auto send = [&] { ++sent; };
  questions.ask({"stacks", 1}, now, send);
  questions.ask({"stacks", 1}, now + 2 * RankQuestions::kAnswered, send);
  EXPECT_EQ(sent, 2);
  questions.answer({"stacks", 1, Json::object()});
  questions.ask({"stacks", 1}, now, send);
  EXPECT_EQ(sent, 3);
  questions.answer({"stacks", 7, Json::object()});  // nobody asked
}

}  // namespace
}  // namespace footplate::host
