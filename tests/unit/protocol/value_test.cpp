#include "protocol/value.h"

#include <limits>

#include "fixture.h"

namespace footplate {
namespace {

using test::message;

template <class T>
T read(const Json& json, Type type, std::string_view unit = {}) {
  const auto value = value_from_json(json, type, unit);
  EXPECT_TRUE(value) << message(value);
  return std::get<T>(value.value());
}

TEST(Value, Integers) {
  EXPECT_EQ(read<std::int64_t>(5, Type::integer), 5);
  EXPECT_EQ(read<std::int64_t>(5.0, Type::integer), 5);  // 10/2 in Lua
  EXPECT_EQ(read<std::int64_t>(-9007199254740992.0, Type::integer), -9007199254740992);
  EXPECT_EQ(read<std::int64_t>(std::numeric_limits<std::int64_t>::max(), Type::integer),
            std::numeric_limits<std::int64_t>::max());
  EXPECT_EQ(message(value_from_json(5.5, Type::integer)), "expects a whole number, got 5.5");
  EXPECT_EQ(message(value_from_json(1e300, Type::integer)), "expects a whole number, got 1e+300");
  EXPECT_EQ(message(value_from_json("5", Type::integer)),
            "expects a whole number, got the string \"5\"; without quotes it is a number: 5");
  EXPECT_EQ(message(value_from_json("@nan", Type::integer)), "expects a whole number, got NaN");
  EXPECT_EQ(message(value_from_json(true, Type::integer)), "expects a whole number, got true");
  EXPECT_EQ(message(value_from_json(18446744073709551615u, Type::integer)),
            "expects a whole number of at most 64 bits, got 18446744073709551615");
}

TEST(Value, Numbers) {
  EXPECT_EQ(read<double>(5, Type::number), 5.0);
  EXPECT_EQ(read<double>(0.1, Type::number), 0.1);
  EXPECT_EQ(message(value_from_json("@inf", Type::number)), "expects a number, got infinity");
  EXPECT_EQ(message(value_from_json("@-inf", Type::number)), "expects a number, got -infinity");
  EXPECT_EQ(message(value_from_json("@nan", Type::number)), "expects a number, got NaN");
  EXPECT_EQ(message(value_from_json(Json(), Type::number)), "expects a number, got nil");
  EXPECT_EQ(message(value_from_json(Json::object(), Type::number)), "expects a number, got a table");
}

TEST(Value, Units) {
  EXPECT_EQ(read<double>("30m", Type::number, "s"), 1800.0);
  EXPECT_EQ(read<double>("1.5h", Type::number, "s"), 5400.0);
  EXPECT_EQ(read<double>("250ms", Type::number, "s"), 0.25);
  EXPECT_EQ(read<double>("2d", Type::number, "s"), 172800.0);
  EXPECT_EQ(read<std::int64_t>("2GiB", Type::integer, "bytes"), std::int64_t{2} << 30);
  EXPECT_EQ(read<std::int64_t>("1MB", Type::integer, "bytes"), 1000000);
  for (const char* bad : {"30", "30x", "m", "", "30 m", "nans", "infs", "30m "})
    EXPECT_FALSE(value_from_json(bad, Type::number, "s")) << bad;
  EXPECT_FALSE(value_from_json("30m", Type::number)) << "no unit, no suffix";
  EXPECT_FALSE(value_from_json("30m", Type::number, "steps"));
}

TEST(Value, IntervalsAreStepsOrATime) {
  EXPECT_EQ(read<std::int64_t>(500, Type::interval), 500);
  EXPECT_EQ(read<std::string>("30m", Type::interval), "30m");
  EXPECT_EQ(interval_of(Value(std::int64_t{500})), (Interval{500, 0}));
  EXPECT_EQ(interval_of(Value(std::string("30m"))), (Interval{0, 1800}));
  EXPECT_FALSE(interval_of(Value(std::int64_t{0})).is_ever());
  EXPECT_EQ(message(value_from_json("0.5s", Type::interval)),
            "can't be 0.5s; a time is at least 1s and at most 30d");
  EXPECT_EQ(message(value_from_json(2.5, Type::interval)),
            R"(expects a whole number, got 2.5; or a time: "90s", "30m", "2h")");
  for (const char* bad : {"30", "", "m", "31d", "@inf", "-5s"})
    EXPECT_FALSE(value_from_json(bad, Type::interval)) << bad;
}

TEST(Value, TheOthers) {
  EXPECT_TRUE(read<bool>(true, Type::boolean));
  EXPECT_EQ(read<std::string>("x", Type::string), "x");
  EXPECT_EQ(read<std::vector<double>>(Json::array({0.9, 1}), Type::numbers), (std::vector<double>{0.9, 1.0}));
  EXPECT_EQ(message(value_from_json(1, Type::boolean)), "expects true or false, got 1");
  EXPECT_EQ(message(value_from_json(1, Type::string)), "expects a string, got 1");
  EXPECT_EQ(message(value_from_json(1, Type::numbers)), "expects a list of numbers, got 1");
  EXPECT_EQ(message(value_from_json(Json::array({1, "x"}), Type::numbers)),
            "expects a number, got the string \"x\"");
  EXPECT_EQ(message(value_from_json(Json::array(), Type::string)), "expects a string, got a list of 0");
}

TEST(Value, TextReadsBackExactly) {
  EXPECT_EQ(to_text(Value(true)), "true");
  EXPECT_EQ(to_text(Value(std::int64_t{-3})), "-3");
  EXPECT_EQ(to_text(Value(0.1)), "0.1");
  EXPECT_EQ(to_text(Value(1e-8)), "1e-8");
  EXPECT_EQ(to_text(Value(std::vector<double>{0.9, 0.99})), "{0.9, 0.99}");
  EXPECT_EQ(to_text(Value(std::string("a\"b\\c\nd\x01\x7f"))), R"("a\"b\\c\nd\x01\x7f")");
  for (const double number : {0.1, 1e-300, 12345.678, -5e300, 1e-8, 1e10, 2.5e-07, 1e100, 3.0, 1.0 / 3})
    EXPECT_EQ(std::stod(shortest(number)), number);
}

TEST(Value, DisplayIsForPeople) {
  EXPECT_EQ(display(Value(std::int64_t{10}), "steps"), "10 steps");
  EXPECT_EQ(display(Value(std::string("adamw"))), "adamw");
  EXPECT_EQ(display(Value(std::string())), "\"\"");
}

TEST(Value, JsonRoundTrip) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(to_json(Value(nan)), "@nan");
  EXPECT_EQ(to_json(Value(std::vector<double>{nan, 1})), Json::array({"@nan", 1.0}));
  for (const Value& value : {Value(true), Value(std::int64_t{1}), Value(0.1), Value(std::string("x")),
                             Value(std::vector<double>{1, 2})}) {
    const Type types[] = {Type::boolean, Type::integer, Type::number, Type::string, Type::numbers};
    EXPECT_EQ(value_from_json(to_json(value), types[value.index()]).value(), value);
  }
}

TEST(Value, TypeNames) {
  for (const Type type :
       {Type::boolean, Type::integer, Type::number, Type::string, Type::choice, Type::numbers})
    EXPECT_EQ(type_from_string(to_string(type)).value(), type);
  EXPECT_FALSE(type_from_string("tensor"));
}

TEST(Excerpt, CutsLongTextBetweenCharacters) {
  EXPECT_EQ(excerpt("short"), "short");
  EXPECT_EQ(excerpt(std::string(80, 'x')), std::string(80, 'x'));
  EXPECT_EQ(excerpt(std::string(81, 'x')), std::string(80, 'x') + "…");
  const std::string umlauts = std::string(79, 'x') + "üüü";
  EXPECT_EQ(excerpt(umlauts), std::string(79, 'x') + "…");
  EXPECT_EQ(excerpt(std::string(100, '\x80')), "…");
}

}  // namespace
}  // namespace footplate
