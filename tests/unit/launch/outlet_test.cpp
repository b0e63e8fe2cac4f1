// What a reader of stdout gets, and what it misses.
#include "console/launch/start/outlet.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <unistd.h>

#include <array>
#include <optional>
#include <string>

namespace footplate {
namespace {

using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;

class OutletTest : public testing::Test {
 protected:
  OutletTest() {
    EXPECT_EQ(::pipe2(ends_.data(), O_NONBLOCK | O_CLOEXEC), 0);
    ::fcntl(ends_[1], F_SETPIPE_SZ, 1 << 16);
    outlet.emplace(ends_[1]);
  }
  ~OutletTest() override {
    ::close(ends_[0]);
    ::close(ends_[1]);
  }
  /// Reads until nothing is left.
  std::string read_all() {
    std::string text;
    std::array<char, 65536> block;
    for (;;) {
      outlet->flush();
      const ssize_t got = ::read(ends_[0], block.data(), block.size());
      if (got <= 0) return text;
      text.append(block.data(), static_cast<std::size_t>(got));
    }
  }

  std::optional<Outlet> outlet;

 private:
  std::array<int, 2> ends_{};
};

std::string lines(int count) {
  std::string text;
  for (int line = 0; line < count; ++line) text += std::string(99, 'x') + "\n";
  return text;
}

TEST_F(OutletTest, WhatComesAtOnceIsShownHoweverLong) {
  outlet->push(lines(20'000));
  EXPECT_EQ(read_all().size(), 2'000'000U);
}

TEST_F(OutletTest, AReaderThatTakesNothingMissesLinesAndIsToldHowMany) {
  outlet->push(lines(12'000));
  outlet->flush();
  outlet->push(lines(3));
  outlet->push(lines(4));
  const std::string text = read_all();
  EXPECT_THAT(text, EndsWith("(7 lines left out: the reader is slow)\n"));
  outlet->push("more\n");
  EXPECT_EQ(read_all(), "more\n");
}

}  // namespace
}  // namespace footplate
