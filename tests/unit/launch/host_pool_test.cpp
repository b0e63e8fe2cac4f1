#include "console/launch/start/host_pool.h"

#include <gmock/gmock.h>

#include <map>
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

TEST(HostPoolTest, AHostHasRoomForTheDevicesThatItHasLeft) {
  const auto without = [](const HostPool& pool, const std::map<std::string, int>& failed) {
    return host_list_text(take_hosts(pool, {}, failed));
  };
  EXPECT_EQ(without(pool_of("n1:4,n2:4", 0, 0), {{"n2", 1}, {"n9", 2}}), "n1:4,n2:3");
  EXPECT_EQ(without(pool_of("n1:4,n2:4,n3:4", 1, 6), {{"n1", 1}}), "n1:3,n2:3");
  EXPECT_EQ(without(pool_of("n1,n2,n3", 0, 24), {{"n2", 1}}), "n1:8,n2:7,n3:8");
  EXPECT_EQ(without(pool_of("n1,n2,n3", 1, 2), {{"n2", 1}}), "n1:1,n3:1");
  EXPECT_EQ(without(pool_of("n1,n2,n3", 0, 24), {{"n3", 2}}), "n1:8,n2:8,n3:6");
  EXPECT_EQ(without(pool_of("n1,n2.x.org", 0, 8), {{"n1.x.org", 1}, {"n2", 2}, {"n2.y.org", 1}}),
            "n1:3,n2.x.org:2");
  EXPECT_EQ(without(pool_of("n1:1,n2:4", 0, 0), {{"n1", 1}}), "")
      << "this machine is among those of each start";
}

TEST(HostPoolTest, OneMachineHasARankForEachDeviceThatIsLeft) {
  HostPool pool;
  pool.ranks = 4;
  EXPECT_EQ(ranks_without(pool, 0), 4);
  EXPECT_EQ(ranks_without(pool, 1), 3);
  EXPECT_EQ(ranks_without(pool, 9), 0);
  pool.devices = 8;
  EXPECT_EQ(ranks_without(pool, 3), 4) << "others take their place";
  EXPECT_EQ(ranks_without(pool, 5), 3);
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
