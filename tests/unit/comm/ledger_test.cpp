#include "runtime/comm/ledger.h"

#include <gtest/gtest.h>

namespace footplate {
namespace {

TEST(Ledger, IsEmptyAtFirst) {
  EXPECT_EQ(Ledger().current().sequence, 0u);
}

TEST(Ledger, ShowsTheOldestThatIsNotFinished) {
  Ledger ledger;
  for (int i = 0; i < 3; ++i) ledger.enqueue("all_reduce", "gradients", 10 + i, 5);
  ledger.start(1);
  ledger.finish(1);
  EXPECT_EQ(ledger.current().sequence, 2u);
  EXPECT_EQ(ledger.current().elements, 11);
}

TEST(Ledger, ShowsTheNewestWhereAllAreFinished) {
  Ledger ledger;
  for (std::size_t i = 1; i <= 3 * Ledger::kSize; ++i)
    ledger.finish(ledger.enqueue("barrier", "test", 0, static_cast<std::int64_t>(i)));
  EXPECT_EQ(ledger.current().sequence, 3 * Ledger::kSize);
  EXPECT_EQ(ledger.current().step, static_cast<std::int64_t>(3 * Ledger::kSize));
}

TEST(Ledger, ForgetsWhatIsOlderThanItsSize) {
  Ledger ledger;
  const auto lost = ledger.enqueue("barrier", "test", 0, 1);
  for (std::size_t i = 0; i < Ledger::kSize; ++i) ledger.enqueue("barrier", "test", 0, 2);
  ledger.finish(lost);  // overwritten: must not finish the entry that took its place
  EXPECT_EQ(ledger.current().sequence, 2u);
}

}  // namespace
}  // namespace footplate
