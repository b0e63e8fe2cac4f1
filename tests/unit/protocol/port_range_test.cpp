#include "protocol/port_range.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace footplate {
namespace {

using ::testing::HasSubstr;

TEST(PortRangeTest, IsReadAsItIsWritten) {
  EXPECT_FALSE(*parse_ports(""));
  const auto range = *parse_ports("20000-20063");
  ASSERT_TRUE(range);
  EXPECT_EQ(range->first, 20000);
  EXPECT_EQ(range->last, 20063);
  EXPECT_EQ(range->count(), 64);
}

TEST(PortRangeTest, SaysWhatARangeIs) {
  for (const char* text : {"20000", "20000-", "-20063", "20000-20063-1", "20063-20000", "20000-20014",
                           "80-200", "65500-65540", "a-b", " 20000-20063", "+20000-20063"}) {
    const auto range = parse_ports(text);
    ASSERT_FALSE(range) << text;
    EXPECT_THAT(range.error().message,
                HasSubstr("'" + std::string(text) + "' is no range of ports; one is written 20000-20063"));
  }
}

}  // namespace
}  // namespace footplate
