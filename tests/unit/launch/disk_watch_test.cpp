#include "console/launch/supervise/disk_watch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace footplate {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(DiskWatchTest, SaysOnceThatADiskStaysFull) {
  bool full = false;
  DiskWatch watch("/runs/t", [&](const std::filesystem::path&) { return full; });
  DiskWatch::Clock::time_point now{};
  const auto later = [&] { return watch.look(now += std::chrono::seconds(2)); };
  EXPECT_THAT(later(), IsEmpty());
  for (int time = 0; time < 2; ++time) {
    full = true;
    EXPECT_THAT(later(), IsEmpty()) << "a save that fails, perhaps";
    EXPECT_THAT(watch.look(now), IsEmpty()) << "too early";
    EXPECT_THAT(later(), HasSubstr("the disk of /runs/t"));
    EXPECT_THAT(later(), IsEmpty());
    full = false;
    EXPECT_THAT(later(), IsEmpty());
  }
}

TEST(DiskWatchTest, KnowsADiskWithRoom) {
  EXPECT_FALSE(is_disk_full("/"));
  EXPECT_FALSE(is_disk_full("/no/such/folder"));
}

}  // namespace
}  // namespace footplate
