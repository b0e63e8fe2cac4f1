#include "run_files/journaled_orders.h"

#include "tests/unit/records/fixture.h"

namespace footplate {
namespace {

TEST(LastJournaledOrder, IsTheLargestId) {
  test::TemporaryFolder folder;
  const auto path = folder.path() / "journal.lua";
  EXPECT_EQ(last_journaled_order(path), 0u);
  std::ofstream(path)
      << "-- start \"T1\" of run t\n-- order 12 · ann · s1 · now\nat(10, { log = { every = 5 } })\n"
         "-- order 9 · ann · s1 · now\n--   -- order 99 is only quoted\nat(20, {})\n-- order x\n";
  EXPECT_EQ(last_journaled_order(path), 12u);
}

TEST(HeldByCheckpoint, UpToTheLastOrderInOrderOfApplication) {
  const std::vector<AppliedAt> applied{{1, 10}, {3, 20}, {2, 30}, {4, 40}};
  EXPECT_EQ(held_by_checkpoint(applied, 0, 100), 0u) << "the checkpoint holds no order";
  EXPECT_EQ(held_by_checkpoint(applied, 3, 25), 2u);
  EXPECT_EQ(held_by_checkpoint(applied, 2, 35), 3u) << "an order for a later step follows younger ones";
  EXPECT_EQ(held_by_checkpoint(applied, 4, 40), 4u);
  EXPECT_EQ(held_by_checkpoint({}, 4, 40), 0u);
  EXPECT_EQ(held_by_checkpoint({{1, 10}, {5, 30}, {2, 30}, {4, 30}}, 2, 30), 3u) << "not by ids at one step";
}

TEST(HeldByCheckpoint, StepsAndIdsDecideWhereTheJournalLacksIt) {
  const std::vector<AppliedAt> applied{{1, 10}, {2, 20}, {5, 20}, {6, 30}};
  EXPECT_EQ(held_by_checkpoint(applied, 4, 20), 2u);
  EXPECT_EQ(held_by_checkpoint(applied, 4, 15), 1u);
  EXPECT_EQ(held_by_checkpoint(applied, 7, 30), 4u);
}

}  // namespace
}  // namespace footplate
