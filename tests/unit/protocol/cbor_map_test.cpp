#include "protocol/cbor_map.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "protocol/json.h"

namespace footplate {
namespace {

using Bytes = std::vector<std::uint8_t>;

/// The field `x` of what to_cbor() writes of it.
class CborMapTest : public ::testing::Test {
 protected:
  CborItem field(const Json& value) {
    bytes_ = to_cbor(Json{{"before", {1, {{"deep", true}}}}, {"x", value}, {"zz", "behind"}});
    map_ = CborMap::of(bytes_);
    EXPECT_TRUE(map_ && map_->find("x") != nullptr) << value;
    return *map_->find("x");
  }

  Bytes bytes_;
  std::optional<CborMap> map_;
};

TEST_F(CborMapTest, ReadsWhatIsWritten) {
  constexpr auto kMost = std::numeric_limits<std::uint64_t>::max();
  constexpr auto kLeast = std::numeric_limits<std::int64_t>::min();
  for (const std::uint64_t number :
       {std::uint64_t{0}, std::uint64_t{23}, std::uint64_t{24}, std::uint64_t{255}, std::uint64_t{256},
        std::uint64_t{65536}, std::uint64_t{1} << 32, kMost})
    EXPECT_EQ(field(number).non_negative(), number);
  for (const std::int64_t number : {std::int64_t{-1}, std::int64_t{-24}, std::int64_t{-25},
                                    std::int64_t{-70000}, std::int64_t{7}, kLeast})
    EXPECT_EQ(field(number).integer(), number);
  EXPECT_EQ(field(kMost).integer(), std::nullopt) << "too large for it";
  EXPECT_EQ(field(-1).non_negative(), std::nullopt);
  for (const double number : {0.0, 1.5, -0.1, 1e300, 123.456}) EXPECT_EQ(field(number).number(), number);
  EXPECT_EQ(field(-7).number(), -7.0);
  EXPECT_EQ(field(kMost).number(), static_cast<double>(kMost));
  EXPECT_EQ(field("all_reduce").text(), "all_reduce");
  EXPECT_EQ(field(std::string(300, 'x')).text(), std::string(300, 'x'));
  EXPECT_EQ(field(true).boolean(), true);
  EXPECT_EQ(field(false).boolean(), false);
}

TEST_F(CborMapTest, SaysNothingOfAnotherType) {
  for (const Json& value : std::initializer_list<Json>{"5", true, nullptr, {{"a", 1}}, {1, 2}}) {
    EXPECT_FALSE(field(value).non_negative() || field(value).integer() || field(value).number()) << value;
    EXPECT_EQ(field(value).text().has_value(), value.is_string());
    EXPECT_EQ(field(value).boolean().has_value(), value.is_boolean());
    EXPECT_EQ(CborPair::of(field(value)).has_value(), value.is_array());
    EXPECT_EQ(CborMap::of(field(value)).has_value(), value.is_object());
  }
  EXPECT_FALSE(field(5).text() || field(5).boolean());
  EXPECT_FALSE(CborPair::of(field({1, 2, 3})));
}

TEST_F(CborMapTest, FindsFieldsByName) {
  field(5);
  EXPECT_EQ(map_->find("y"), nullptr);
  EXPECT_EQ(map_->find("zz")->text(), "behind");
  const auto pair = CborPair::of(field({7, "b"}));
  EXPECT_EQ(pair->first.integer(), 7);
  EXPECT_EQ(pair->second.text(), "b");
  const Bytes twice{0xa2, 0x61, 'a', 0x01, 0x61, 'a', 0x02};
  EXPECT_EQ(CborMap::of(twice)->find("a")->integer(), 2) << "as from_cbor()";
  EXPECT_EQ(from_cbor(twice.data(), twice.size()).value(), (Json{{"a", 2}}));
}

TEST_F(CborMapTest, TakesNothingCutOrTooLong) {
  field(1.25);
  for (std::size_t size = 0; size < bytes_.size(); ++size)
    EXPECT_FALSE(CborMap::of(std::span(bytes_.data(), size))) << size;
  bytes_.push_back(0);
  EXPECT_FALSE(CborMap::of(bytes_));
}

TEST_F(CborMapTest, LeavesTheUnusualToOthers) {
  Json large;
  for (int i = 0; i <= static_cast<int>(CborMap::kMost); ++i) large["field " + std::to_string(i)] = i;
  EXPECT_FALSE(CborMap::of(to_cbor(large)));
  Json deep = 1;
  for (int i = 0; i < 20; ++i) deep = Json::array({deep});
  EXPECT_FALSE(CborMap::of(to_cbor({{"x", deep}})));
  EXPECT_FALSE(CborMap::of(Bytes(100000, 0xa1))) << "a map in a map in a map …";
  EXPECT_FALSE(CborMap::of(Bytes{0xbf, 0xff})) << "of no stated length";
  EXPECT_FALSE(CborMap::of(Bytes{0xa1, 0x01, 0x02})) << "the name is a number";
  EXPECT_FALSE(CborMap::of(Bytes{0xa1, 0x61, 'x', 0x9b, 255, 255, 255, 255, 255, 255, 255, 255}));
  EXPECT_FALSE(CborMap::of(to_cbor(5)));
}

}  // namespace
}  // namespace footplate
