#include "runtime/comm/ledger.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

namespace footplate {
namespace {

LedgerEntry gradients(std::int64_t elements, std::int64_t step = 5) {
  LedgerEntry made = entry(Collective::all_reduce, {nullptr, elements, DataType::float32}, "gradients");
  made.step = step;
  return made;
}

void run(Ledger& ledger, const LedgerEntry& entry) {
  const auto sequence = ledger.enqueue(entry);
  ledger.start(sequence);
  ledger.finish(sequence);
}

TEST(Ledger, IsEmptyAtFirst) {
  EXPECT_EQ(Ledger().current().sequence, 0U);
  EXPECT_EQ(Ledger().newest(), 0U);
  EXPECT_FALSE(Ledger().find(0));
  EXPECT_FALSE(Ledger().find(1));
  EXPECT_TRUE(Ledger().patterns().empty());
}

TEST(Ledger, ShowsTheOldestThatIsNotFinished) {
  Ledger ledger;
  for (int i = 0; i < 3; ++i) ledger.enqueue(gradients(10 + i));
  ledger.start(1);
  ledger.finish(1);
  EXPECT_EQ(ledger.current().sequence, 2U);
  EXPECT_EQ(ledger.current().elements, 11);
  EXPECT_FALSE(ledger.current().is_started());
  ledger.start(2);
  EXPECT_TRUE(ledger.current().is_started());
  EXPECT_FALSE(ledger.current().is_finished());
}

TEST(Ledger, ShowsTheNewestWhereAllAreFinished) {
  Ledger ledger;
  for (std::size_t i = 1; i <= 3 * Ledger::kSize; ++i)
    run(ledger, gradients(0, static_cast<std::int64_t>(i)));
  EXPECT_EQ(ledger.current().sequence, 3 * Ledger::kSize);
  EXPECT_EQ(ledger.current().step, static_cast<std::int64_t>(3 * Ledger::kSize));
  EXPECT_TRUE(ledger.current().is_finished());
}

TEST(Ledger, ForgetsWhatIsOlderThanItsSize) {
  Ledger ledger;
  const auto lost = ledger.enqueue(gradients(1));
  for (std::size_t i = 0; i < Ledger::kSize; ++i) ledger.enqueue(gradients(2));
  EXPECT_FALSE(ledger.find(lost));
  ledger.start(lost);
  ledger.finish(lost);  // overwritten: must not finish the entry that took its place
  EXPECT_FALSE(ledger.find(lost + Ledger::kSize)->is_finished());
  EXPECT_EQ(ledger.current().sequence, 2U);
}

TEST(Ledger, KeepsWhatAnOperationWas) {
  Ledger ledger;
  LedgerEntry eval = entry(Collective::broadcast, {nullptr, 7, DataType::uint8}, "path", 3);
  eval.phase = Phase::evaluation;
  eval.step = 12;
  ledger.enqueue(eval);
  const auto found = ledger.find(1);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->kind, Collective::broadcast);
  EXPECT_EQ(found->type, DataType::uint8);
  EXPECT_EQ(found->elements, 7);
  EXPECT_EQ(found->variant, 3);
  EXPECT_EQ(found->phase, Phase::evaluation);
  EXPECT_EQ(found->step, 12);
  EXPECT_STREQ(found->name, "path");
  EXPECT_EQ(found->generation, 1U);
}

TEST(Ledger, ItsDigestTellsRanksApartThatCalledSomethingElse) {
  const auto digest_of = [](const std::vector<LedgerEntry>& entries) {
    Ledger ledger;
    for (const LedgerEntry& one : entries) ledger.enqueue(one);
    return ledger.find(entries.size())->digest;
  };
  const auto usual = digest_of({gradients(10), gradients(10)});
  EXPECT_EQ(digest_of({gradients(10), gradients(10)}), usual);
  LedgerEntry other_type = gradients(10), other_op = gradients(10), other_kind = gradients(10);
  other_type.type = DataType::float64;
  other_op.variant = static_cast<int>(ReduceOp::max);
  other_kind.kind = Collective::broadcast;
  LedgerEntry other_name = gradients(10);
  other_name.name = "verdict";
  for (const LedgerEntry& odd :
       {other_type, other_op, other_kind, other_name, gradients(11), gradients(10, 6)}) {
    EXPECT_NE(digest_of({odd, gradients(10)}), usual) << "a difference stays";
    EXPECT_NE(digest_of({gradients(10), odd}), usual);
  }
}

TEST(Ledger, CountsPatternsByKindAndSize) {
  Ledger ledger;
  for (int i = 0; i < 3; ++i) run(ledger, gradients(1500));
  run(ledger, gradients(9999));
  run(ledger, gradients(10000));
  run(ledger, entry(Collective::barrier, {}, "start"));
  run(ledger, gradients(std::int64_t{1} << 50));
  ledger.enqueue(gradients(1500));  // not finished
  const auto patterns = ledger.patterns();
  ASSERT_EQ(patterns.size(), 4U);
  EXPECT_EQ(patterns[0].at_least, 1000);
  EXPECT_EQ(patterns[0].count, 4);
  EXPECT_EQ(patterns[0].bytes, 4 * (3 * 1500 + 9999));
  EXPECT_GE(patterns[0].longest, patterns[0].total / 4);
  EXPECT_EQ(patterns[1].at_least, 10000);
  EXPECT_EQ(patterns[2].at_least, 10000000000);
  EXPECT_EQ(patterns[3].kind, Collective::barrier);
  EXPECT_EQ(patterns[3].at_least, 0);
}

TEST(Ledger, TellsTheLongestOfSmallOnesSinceItWasAskedLast) {
  Ledger ledger;
  run(ledger, gradients(9999));
  const auto sequence = ledger.enqueue(gradients(10));
  ledger.start(sequence);
  std::this_thread::sleep_for(std::chrono::milliseconds(2));
  ledger.finish(sequence);
  EXPECT_GE(ledger.take_longest(10'000), std::chrono::milliseconds(2));
  EXPECT_EQ(ledger.take_longest(10'000).count(), 0) << "it was taken";
  run(ledger, gradients(10'000));
  EXPECT_EQ(ledger.take_longest(10'000).count(), 0) << "none of fewer";
  EXPECT_GT(ledger.take_longest(100'000).count(), 0);
}

/// Readers on other threads never see a mixture of two entries.
TEST(Ledger, IsReadWhileItIsWritten) {
  Ledger ledger;
  std::atomic<bool> quit{false};
  std::thread reader([&] {
    while (!quit) {
      for (const LedgerEntry& seen :
           {ledger.current(), ledger.find(ledger.newest()).value_or(LedgerEntry{})}) {
        if (seen.sequence == 0) continue;
        EXPECT_EQ(seen.elements, static_cast<std::int64_t>(seen.sequence));
        EXPECT_EQ(seen.step, static_cast<std::int64_t>(seen.sequence) + 1);
      }
    }
  });
  for (std::int64_t i = 1; i <= 100000; ++i) run(ledger, gradients(i, i + 1));
  quit = true;
  reader.join();
  EXPECT_EQ(ledger.current().sequence, 100000U);
}

}  // namespace
}  // namespace footplate
