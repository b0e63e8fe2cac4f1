#include "protocol/json.h"

#include <cmath>
#include <limits>

#include "fixture.h"

namespace footplate {
namespace {

using test::message;

TEST(JsonNumbers, NanAndInfinityAreTagged) {
  EXPECT_EQ(number_to_json(std::numeric_limits<double>::quiet_NaN()), "@nan");
  EXPECT_EQ(number_to_json(std::numeric_limits<double>::infinity()), "@inf");
  EXPECT_EQ(number_to_json(-std::numeric_limits<double>::infinity()), "@-inf");
  EXPECT_EQ(number_to_json(0.1), 0.1);
  EXPECT_TRUE(std::isnan(*number_from_json("@nan")));
  EXPECT_EQ(number_from_json("@-inf"), -std::numeric_limits<double>::infinity());
  EXPECT_EQ(number_from_json(3), 3.0);
  EXPECT_FALSE(number_from_json("nan"));
  EXPECT_FALSE(number_from_json(Json()));
  EXPECT_FALSE(number_from_json(true));
}

TEST(JsonLine, IsOneLineOfValidUtf8) {
  EXPECT_EQ(to_line({{"a", "x\ny"}}), "{\"a\":\"x\\ny\"}\n");
  EXPECT_EQ(to_line("\xff"), "\"\xef\xbf\xbd\"\n");
  EXPECT_EQ(to_line({{"b", 1}, {"a", 2}}), "{\"a\":2,\"b\":1}\n");
}

TEST(JsonLine, ParseRefusesWhatIsntJson) {
  EXPECT_EQ(*parse_line("{\"a\":1}"), (Json{{"a", 1}}));
  EXPECT_EQ(*parse_line(" 5 "), 5);
  for (const char* bad : {"", "{", "{'a':1}", "{\"a\":1}x", "nan", "\"\xff\"", "[1,]", "1e999"})
    EXPECT_FALSE(parse_line(bad)) << bad;
}

TEST(JsonLine, DepthIsBounded) {
  EXPECT_TRUE(parse_line(std::string(64, '[') + std::string(64, ']')));
  EXPECT_EQ(message(parse_line(std::string(65, '[') + std::string(65, ']'))),
            "JSON nested deeper than 64 levels");
  EXPECT_FALSE(parse_line(std::string(1000000, '[')));
  EXPECT_TRUE(parse_line("\"" + std::string(100, '[') + "\"")) << "brackets in a string are no depth";
  EXPECT_TRUE(parse_line("\"\\\"" + std::string(100, '[') + "\""));
}

TEST(JsonCbor, RoundTripAndRefusal) {
  const Json json = {
      {"t", "prepare"}, {"x", {1, 2.5, "y", nullptr, true, -7}}, {"big", 18446744073709551615u}};
  const auto bytes = to_cbor(json);
  EXPECT_EQ(*from_cbor(bytes.data(), bytes.size()), json);
  for (std::size_t size = 0; size < bytes.size(); ++size) EXPECT_FALSE(from_cbor(bytes.data(), size)) << size;
  auto longer = bytes;
  longer.push_back(0);
  EXPECT_FALSE(from_cbor(longer.data(), longer.size())) << "trailing bytes";
}

TEST(JsonCbor, DepthAndLengthsAreBounded) {
  const auto nested = [](std::size_t depth) {
    return std::vector<std::uint8_t>(depth, 0x81);
  };  // a list of one
  auto good = nested(64);
  good.push_back(0x01);
  EXPECT_TRUE(from_cbor(good.data(), good.size()));
  auto deep = nested(65);
  deep.push_back(0x01);
  EXPECT_FALSE(from_cbor(deep.data(), deep.size()));
  const auto very_deep = nested(1000000);
  EXPECT_FALSE(from_cbor(very_deep.data(), very_deep.size()));
  // A list, an object, a text of 2^64 - 2 elements.
  for (const int kind : {0x9b, 0xbb, 0x7b, 0x5b}) {
    const std::vector<std::uint8_t> huge{
        static_cast<std::uint8_t>(kind), 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xfe, 0x00};
    EXPECT_FALSE(from_cbor(huge.data(), huge.size())) << kind;
  }
}

}  // namespace
}  // namespace footplate
