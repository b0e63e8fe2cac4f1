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

TEST(EndBarrierTest, ANewWorldComesAgain) {
  EndBarrier end(2);
  end.add(0, 20, 0);
  end.add(1, 20, 0);
  end.go_on(1, 3);
  EXPECT_FALSE(end.all_are_there());
  end.add(0, 21, 3);
  EXPECT_TRUE(end.all_are_there());
}

}  // namespace
}  // namespace footplate
