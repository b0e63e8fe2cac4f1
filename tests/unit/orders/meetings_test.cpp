#include "runtime/orders/meetings.h"

#include <gtest/gtest.h>

namespace footplate {
namespace {

TEST(MeetingsTest, KnowsWhichThisRankHasMissed) {
  Meetings meetings;
  EXPECT_EQ(meetings.come(), 1U);
  meetings.decide(1, "");
  EXPECT_FALSE(meetings.missed()) << "this rank is there";
  EXPECT_EQ(meetings.take(1), "");
  EXPECT_FALSE(meetings.is_decided(1));
  meetings.decide(2, "rank 1 didn't come");
  EXPECT_TRUE(meetings.missed());
  EXPECT_EQ(meetings.come(), 2U);
  EXPECT_EQ(meetings.take(2), "rank 1 didn't come");
  EXPECT_FALSE(meetings.missed());
}

TEST(MeetingsTest, ANewWorldCountsFromTheStart) {
  Meetings meetings;
  meetings.come();
  meetings.decide(2, "");
  meetings.reset();
  EXPECT_FALSE(meetings.missed());
  EXPECT_EQ(meetings.come(), 1U);
}

}  // namespace
}  // namespace footplate
