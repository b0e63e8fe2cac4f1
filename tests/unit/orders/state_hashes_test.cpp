#include "runtime/orders/state_hashes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace footplate {
namespace {

using ::testing::ElementsAre;

TEST(StateHashesTest, NamesTheMinorityAndBothWhereThereIsNone) {
  StateHashes three(3);
  EXPECT_FALSE(three.add(0, 10, 1) || three.add(1, 10, 2));
  EXPECT_THAT(three.add(2, 10, 1)->odd, ElementsAre(1));
  StateHashes two(2);
  two.add(0, 10, 1);
  EXPECT_THAT(two.add(1, 10, 2)->odd, ElementsAre(0, 1));
  two.add(0, 20, 3);
  EXPECT_FALSE(two.add(1, 20, 3));
}

}  // namespace
}  // namespace footplate
