#include "runtime/orders/end_barrier.h"

#include <gtest/gtest.h>

namespace footplate {
namespace {

TEST(EndBarrierTest, ARanksWordCountsOnceItHasHeardOfAllCommits) {
  EndBarrier end(2);
  end.count_commit();
  end.add(0, 20, 1);
  EXPECT_FALSE(end.all_are_there());
  end.add(1, 20, 0);
  EXPECT_FALSE(end.all_are_there());
  end.add(1, 20, 1);
  EXPECT_TRUE(end.all_are_there());
  EXPECT_EQ(end.step(), 20);
  end.count_commit();
  EXPECT_FALSE(end.all_are_there());
}

TEST(EndBarrierTest, ARankThatComesTwiceIsOneRank) {
  EndBarrier end(3);
  end.add(0, 20, 0);
  end.add(1, 20, 0);
  end.add(1, 20, 0);
  EXPECT_FALSE(end.all_are_there());
  end.add(2, 20, 0);
  EXPECT_TRUE(end.all_are_there());
  end.count_commit();
  for (const int rank : {2, 2, 0}) end.add(rank, 21, 1);
  EXPECT_FALSE(end.all_are_there()) << "rank 1 stood there before the commit";
  end.add(1, 21, 1);
  EXPECT_TRUE(end.all_are_there());
}

TEST(EndBarrierTest, ANewWorldComesAgain) {
  EndBarrier end(2);
  end.add(0, 20, 0);
  end.add(1, 20, 0);
  end.go_on(1, 3);
  EXPECT_FALSE(end.all_are_there());
  end.add(0, 21, 3);
  EXPECT_TRUE(end.all_are_there());
  end.go_on(1, 3);
  EXPECT_FALSE(end.all_are_there()) << "its word of the old world doesn't count";
}

}  // namespace
}  // namespace footplate
