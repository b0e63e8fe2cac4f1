#include "console/launch/start/host_pool.h"

#include <gmock/gmock.h>

#include <set>
#include <string>

namespace footplate {
namespace {

using ::testing::HasSubstr;

HostPool pool_of(const std::string& hosts, int spare, int ranks) {
  return *make_host_pool(*parse_hosts(hosts), spare, ranks);
}

std::string taken(const HostPool& pool, const std::set<std::string>& silent) {
  return host_list_text(take_hosts(pool, silent));
}

TEST(HostPoolTest, ASpareHostTakesTheRanksOfASilentOne) {
  const HostPool pool = pool_of("n1,n2,n3,n4", 1, 6);
  EXPECT_EQ(taken(pool, {}), "n1:2,n2:2,n3:2");
  EXPECT_EQ(taken(pool, {"n2"}), "n1:2,n3:2,n4:2");
  EXPECT_EQ(taken(pool, {"n4"}), "n1:2,n2:2,n3:2");
}

TEST(HostPoolTest, RanksOfASilentHostAreLeftOutWhereThereIsNoRoom) {
  const HostPool pool = pool_of("n1,n2,n3", 0, 5);
  EXPECT_EQ(taken(pool, {}), "n1:2,n2:2,n3:1");
  EXPECT_EQ(taken(pool, {"n2"}), "n1:2,n3:2");
  EXPECT_EQ(taken(pool, {"n2", "n3"}), "n1:2");
}

TEST(HostPoolTest, SlotsThatWereWrittenAreWhatAHostMayGet) {
  EXPECT_EQ(taken(pool_of("n1:4,n2:4,n3:2", 1, 0), {"n2"}), "n1:4,n3:2");
  // Hosts that get no rank are spare.
  const HostPool pool = pool_of("n1:4,n2:4,n3:4", 0, 6);
  EXPECT_EQ(pool.spare(), 1);
  EXPECT_EQ(taken(pool, {}), "n1:4,n2:2");
  EXPECT_EQ(taken(pool, {"n2"}), "n1:4,n3:2");
}

TEST(HostPoolTest, TheRecordMakesTheSamePool) {
  const HostPool even = pool_of("n1,n2,n3", 0, 4), slots = pool_of("n1:4,n2:2,n3:4", 1, 5);
  EXPECT_EQ(named_hosts(even), "n1,n2,n3");
  EXPECT_EQ(taken(pool_of(named_hosts(even), even.spare(), even.ranks), {}), "n1:2,n2:1,n3:1");
  EXPECT_EQ(taken(pool_of(named_hosts(slots), slots.spare(), slots.ranks), {}), taken(slots, {}));
}

TEST(HostPoolTest, NotAllHostsAreSpare) {
  const auto pool = make_host_pool(*parse_hosts("n1,n2"), 2, 0);
  ASSERT_FALSE(pool);
  EXPECT_THAT(pool.error().message,
              HasSubstr("--spare 2 leaves no host of 2 for the ranks; it takes 0 to 1 here"));
}

TEST(HostPoolTest, MoreRanksThanTheSlotsInUseAreRefused) {
  const auto pool = make_host_pool(*parse_hosts("n1:2,n2:2"), 1, 3);
  ASSERT_FALSE(pool);
  EXPECT_THAT(pool.error().message, HasSubstr("3 ranks don't fit into the 2 slots"));
}

}  // namespace
}  // namespace footplate
