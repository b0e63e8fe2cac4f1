#include "protocol/words.h"

#include <gtest/gtest.h>

namespace footplate {
namespace {

TEST(Words, Join) {
  EXPECT_EQ(join({}), "");
  EXPECT_EQ(join({"a"}), "a");
  EXPECT_EQ(join({"a", "b", "c"}), "a, b, c");
  EXPECT_EQ(join({"", "b"}, " or "), " or b") << "an empty item is one";
}

}  // namespace
}  // namespace footplate
