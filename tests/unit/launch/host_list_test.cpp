#include "console/launch/start/host_list.h"

#include <gmock/gmock.h>

namespace footplate {
namespace {

using testing::HasSubstr;

TEST(HostListTest, ANameThatComesAgainAddsItsSlots) {
  const auto hosts = parse_hosts("n1:2,n2,n1");
  ASSERT_TRUE(hosts) << hosts.error().message;
  ASSERT_EQ(hosts->size(), 2U);
  EXPECT_EQ(hosts->front().slots, 3);
}

std::string spread_text(const std::string& hosts, int ranks) {
  const auto shared = spread(*parse_hosts(hosts), ranks);
  return shared ? host_list_text(*shared) : shared.error().message;
}

TEST(HostListTest, RanksAreSpreadOverHostsWithoutSlots) {
  EXPECT_EQ(spread_text("n1,n2,n3", 3), "n1:1,n2:1,n3:1");
  EXPECT_EQ(spread_text("n1,n2,n3", 7), "n1:3,n2:2,n3:2");
}

TEST(HostListTest, RanksFillTheSlotsThatWereWritten) {
  EXPECT_EQ(spread_text("n1:2,n2:4", 6), "n1:2,n2:4");
  EXPECT_EQ(spread_text("n1:2,n2:4", 3), "n1:2,n2:1");
  EXPECT_EQ(spread_text("n1:2,n2:4", 2), "n1:2");
  EXPECT_THAT(spread_text("n1:2,n2:4", 7), HasSubstr("7 ranks don't fit into the 6 slots"));
  EXPECT_THAT(spread_text("n1:2,n2:4", 7), HasSubstr("--host n1:3"));
}

}  // namespace
}  // namespace footplate
