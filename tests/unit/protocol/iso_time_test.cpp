#include "protocol/iso_time.h"

#include "fixture.h"

namespace footplate {
namespace {

TEST(IsoTime, IsUtcToTheMillisecond) {
  const auto time = std::chrono::system_clock::from_time_t(1795201200);
  EXPECT_EQ(iso_time(time), "2026-11-20T19:00:00.000Z");
  EXPECT_EQ(iso_time(time + std::chrono::milliseconds(7)), "2026-11-20T19:00:00.007Z");
  EXPECT_EQ(iso_time(time - std::chrono::milliseconds(1)), "2026-11-20T18:59:59.999Z");
  EXPECT_EQ(iso_seconds(time + std::chrono::milliseconds(999)), "2026-11-20T19:00:00Z");
  EXPECT_EQ(iso_time(std::chrono::system_clock::from_time_t(0)), "1970-01-01T00:00:00.000Z");
}

}  // namespace
}  // namespace footplate
