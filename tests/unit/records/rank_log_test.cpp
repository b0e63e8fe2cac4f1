#include "runtime/records/rank_log.h"

#include <regex>

#include "fixture.h"

namespace footplate {
namespace {

TEST(Log, LinesHaveTimeAndLevel) {
  test::TemporaryFolder folder;
  {
    const auto log = Log::open(folder.path() / "rank-0.log", "info");
    ASSERT_TRUE(log);
    (*log)->debug("not kept");
    (*log)->info("braces {} and %s are text");
    (*log)->warn("careful");
    (*log)->error("bad");
  }
  const auto lines = test::lines_of(folder.path() / "rank-0.log");
  ASSERT_EQ(lines.size(), 3u);
  EXPECT_TRUE(std::regex_match(
      lines[0], std::regex(R"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z info braces \{\} and %s are text)")))
      << lines[0];
  EXPECT_NE(lines[1].find(" warning careful"), std::string::npos) << lines[1];
  EXPECT_NE(lines[2].find(" error bad"), std::string::npos) << lines[2];
}

TEST(Log, LevelChangesLiveAndNonsenseChangesNothing) {
  test::TemporaryFolder folder;
  {
    const auto log = Log::open(folder.path() / "x.log", "warn");
    (*log)->info("1");
    (*log)->set_level("trace");
    (*log)->trace("2");
    (*log)->set_level("loud");
    (*log)->debug("3");
    (*log)->set_level("error");
    (*log)->warn("4");
  }
  const auto lines = test::lines_of(folder.path() / "x.log");
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_EQ(lines[0].back(), '2');
  EXPECT_EQ(lines[1].back(), '3');
}

/// Each of them, also the last one that has left the queue: what follows may be the end of the process.
TEST(Log, WhatIsFlushedIsInTheFile) {
  test::TemporaryFolder folder;
  const auto file = folder.path() / "x.log";
  const auto log = Log::open(file, "info");
  for (int line = 1; line <= 2000; ++line) {
    const auto before = std::filesystem::file_size(file);
    (*log)->info("a line");
    (*log)->debug("not kept");
    (*log)->flush(std::chrono::seconds(20));
    ASSERT_GT(std::filesystem::file_size(file), before) << "line " << line;
  }
}

TEST(Log, SecondStartAppends) {
  test::TemporaryFolder folder;
  for (int start = 0; start < 2; ++start) (*Log::open(folder.path() / "x.log", "info"))->info("started");
  EXPECT_EQ(test::lines_of(folder.path() / "x.log").size(), 2u);
}

TEST(Log, WhatCantBeOpenedIsAnError) {
  const auto log = Log::open("/proc/nowhere/x.log", "info");
  ASSERT_FALSE(log);
  EXPECT_NE(log.error().message.find("can't open the log"), std::string::npos);
}

TEST(Log, AFloodNeverWaitsAndWhatIsLostIsCounted) {
  test::TemporaryFolder folder;
  std::uint64_t dropped = 0;
  constexpr std::size_t kLines = 50000;
  {
    const auto log = Log::open(folder.path() / "x.log", "info");
    for (std::size_t i = 0; i < kLines; ++i) (*log)->info("line");
    dropped = (*log)->dropped();
  }
  const auto lines = test::lines_of(folder.path() / "x.log");
  // The line that tells how many were lost may have taken the place of one more.
  EXPECT_GE(lines.size() + dropped, kLines);
  EXPECT_LE(lines.size() + dropped, kLines + 1);
}

TEST(Log, AFullDiskIsCountedAndBorne) {
  if (!std::filesystem::exists("/dev/full")) GTEST_SKIP();
  const auto log = Log::open("/dev/full", "info");
  ASSERT_TRUE(log);
  (*log)->info("x");
  EXPECT_TRUE(test::eventually([&] { return (*log)->write_errors() > 0; }));
}

}  // namespace
}  // namespace footplate
