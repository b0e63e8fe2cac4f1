#include "console/doctor/host_checks.h"

#include <gmock/gmock.h>

namespace footplate {
namespace {

TEST(HostsTest, PairsAreAllOrARing) {
  EXPECT_EQ(pairs_to_measure(1).size(), 0U);
  EXPECT_EQ(pairs_to_measure(2).size(), 1U);
  EXPECT_EQ(pairs_to_measure(kAllPairs).size(), kAllPairs * (kAllPairs - 1) / 2);
  const auto ring = pairs_to_measure(kAllPairs + 1);
  EXPECT_EQ(ring.size(), kAllPairs + 1);
  EXPECT_EQ(ring.back(), std::make_pair(kAllPairs, std::size_t{0}));
}

}  // namespace
}  // namespace footplate
