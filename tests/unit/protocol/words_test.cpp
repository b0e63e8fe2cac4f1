#include "protocol/words.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace footplate {
namespace {

TEST(Words, Join) {
  EXPECT_EQ(join({}), "");
  EXPECT_EQ(join({"a"}), "a");
  EXPECT_EQ(join({"a", "b", "c"}), "a, b, c");
  EXPECT_EQ(join({"", "b"}, " or "), " or b") << "an empty item is one";
}

constexpr double kInfinity = std::numeric_limits<double>::infinity();

TEST(Words, Rounded) {
  EXPECT_EQ(rounded(0), "0");
  EXPECT_EQ(rounded(2.31494), "2.315");
  EXPECT_EQ(rounded(0.0003), "0.0003");
  EXPECT_EQ(rounded(5e-5), "5e-5");
  EXPECT_EQ(rounded(-1234.4), "-1234");
  EXPECT_EQ(rounded(25600.4), "25600");
  EXPECT_EQ(rounded(1.5e18), "1.5e18");
  EXPECT_EQ(rounded(2.5512, 2), "2.6");
  EXPECT_EQ(rounded(kInfinity), "inf");
  EXPECT_EQ(rounded(NAN), "-");
}

TEST(Words, Losses) {
  EXPECT_EQ(loss_text(2.31494), "2.3149");
  EXPECT_EQ(loss_text(2.5), "2.5000");
  EXPECT_EQ(loss_text(0), "0.0000");
  EXPECT_EQ(loss_text(0.00012345), "0.0001234") << "four decimals would show one digit";
  EXPECT_EQ(loss_text(1.5e7), "15000000");
  EXPECT_EQ(loss_text(NAN), "nan");
  EXPECT_EQ(loss_text(-kInfinity), "-inf");
}

TEST(Words, Durations) {
  EXPECT_EQ(duration(0), "0 s");
  EXPECT_EQ(duration(59.6), "1 min");
  EXPECT_EQ(duration(192), "3 min 12 s");
  EXPECT_EQ(duration(11520), "3 h 12 min");
  EXPECT_EQ(duration(273600), "3 d 4 h");
  EXPECT_EQ(duration(-5), "-");
  EXPECT_EQ(duration(NAN), "-");
  EXPECT_EQ(duration(kInfinity), "-");
}

TEST(Words, FirstBytesAreWholeCharacters) {
  EXPECT_EQ(first_bytes("aé", 3), "aé");
  EXPECT_EQ(first_bytes("aé", 2), "a");
  EXPECT_EQ(first_bytes("aéb", 3), "aé");
  EXPECT_EQ(first_bytes("a", 0), "");
  EXPECT_EQ(first_bytes("é", 1), "");
  for (std::size_t room = 0; room < 4; ++room) EXPECT_EQ(first_bytes("🚂a", room), "") << room;
  EXPECT_EQ(first_bytes("🚂a", 4), "🚂");
  EXPECT_EQ(first_bytes("\x80\x80\x80\x80\x80\x80", 5), "\x80\x80\x80\x80\x80") << "no UTF-8";
}

TEST(Words, Sizes) {
  EXPECT_EQ(size_text(850), "850 B");
  EXPECT_EQ(size_text(10114728), "10.1 MB");
  EXPECT_EQ(size_text(3'400'000'000'000'000), "3400 TB");
}

}  // namespace
}  // namespace footplate
