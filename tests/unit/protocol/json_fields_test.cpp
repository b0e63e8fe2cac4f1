#include "protocol/json_fields.h"

#include <gtest/gtest.h>

#include <cmath>

namespace footplate {
namespace {

TEST(JsonFields, OfTheRightType) {
  const Json object = {{"text", "x"}, {"number", 2.75}, {"nan", "@inf"}, {"flag", true}, {"whole", -7}};
  EXPECT_EQ(text_of(object, "text"), "x");
  EXPECT_EQ(number_of(object, "number"), 2.75);
  EXPECT_TRUE(std::isinf(number_of(object, "nan")));
  EXPECT_TRUE(flag_of(object, "flag"));
  EXPECT_EQ(integer_of(object, "whole", 1), -7);
  EXPECT_EQ(integer_of(object, "number", 1), 2);
}

TEST(JsonFields, MissingOrOfAnotherType) {
  for (const Json& odd : {Json(), Json(5), Json::array(), Json{{"x", Json::array()}}, Json{{"x", 1e300}}}) {
    EXPECT_EQ(text_of(odd, "x"), "");
    EXPECT_FALSE(flag_of(odd, "x"));
    EXPECT_EQ(integer_of(odd, "x", 42), 42) << odd;
  }
  EXPECT_TRUE(std::isnan(number_of({{"x", "1"}}, "x")));
}

}  // namespace
}  // namespace footplate
