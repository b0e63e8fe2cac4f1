#include "protocol/port_range.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace footplate {
namespace {

using ::testing::HasSubstr;

TEST(PortRangeTest, IsReadAsItIsWritten) {
  EXPECT_FALSE(*parse_ports(""));
  const auto range = *parse_ports("40000-40063");
  ASSERT_TRUE(range);
  EXPECT_EQ(range->first, 40000);
  EXPECT_EQ(range->last, 40063);
  EXPECT_EQ(range->count(), 64);
}

TEST(PortRangeTest, SaysWhatARangeIs) {
  for (const char* text : {"40000", "40000-", "-40063", "40000-40063-1", "40063-40000", "40000-40014",
                           "80-200", "65500-65540", "a-b", " 40000-40063", "+40000-40063"}) {
    const auto range = parse_ports(text);
    ASSERT_FALSE(range) << text;
    EXPECT_THAT(range.error().message,
                HasSubstr("'" + std::string(text) + "' is no range of ports; one is written 40000-40063"));
  }
}

}  // namespace
}  // namespace footplate
