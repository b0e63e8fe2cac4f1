#include "run_files/failed_devices.h"

#include <gmock/gmock.h>

#include <fstream>

#include "tests/unit/records/fixture.h"

namespace footplate {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

FailedDevice device_of(const std::string& id, const std::string& host, int origin, int start,
                       double time = 1.5) {
  return {id, "cuda:0 (NVIDIA H200, 139.8 GiB)", host, "an illegal memory access", 0, origin, start, time};
}

class FailedDevices : public ::testing::Test {
 protected:
  const std::filesystem::path& folder() const { return folder_.path(); }

 private:
  test::TemporaryFolder folder_;
};

TEST_F(FailedDevices, AreThereUntilTheyAreForgotten) {
  EXPECT_THAT(read_failed_devices(folder()), IsEmpty());
  ASSERT_TRUE(add_failed_device(folder(), device_of("GPU-2", "n2", 0, 2, 2.5)));
  ASSERT_TRUE(add_failed_device(folder(), device_of("GPU-1", "n1", 3, 1)));
  const auto devices = read_failed_devices(folder());
  EXPECT_THAT(ids_of(devices), ElementsAre("GPU-1", "GPU-2"));
  EXPECT_EQ(name_of(devices.front()), "GPU-1 on n1, cuda:0 (NVIDIA H200, 139.8 GiB)");
  EXPECT_EQ(devices.front().origin, 3);
  EXPECT_EQ(devices.front().time, 1.5);
  forget_failed_devices(folder());
  EXPECT_THAT(read_failed_devices(folder()), IsEmpty());
}

TEST_F(FailedDevices, WhatCantBeReadIsLeftOut) {
  ASSERT_TRUE(add_failed_device(folder(), device_of("GPU-1", "n1", 3, 1)));
  for (const char* text : {"[]", "{\"id", ""})
    std::ofstream(folder() / "failed-devices" / (std::string("GPU-") + text + ".json")) << text;
  std::ofstream(folder() / "failed-devices" / "notes") << "{}";
  EXPECT_THAT(ids_of(read_failed_devices(folder())), ElementsAre("GPU-1"));
}

TEST_F(FailedDevices, SayWhyTheRanksOfAStartAreGone) {
  ASSERT_TRUE(add_failed_device(folder(), device_of("GPU-1", "n1", 3, 1)));
  ASSERT_TRUE(add_failed_device(folder(), device_of("GPU-2", "n2", 3, 2)));
  EXPECT_EQ(why_lost(folder(), 2, {1, 3}),
            "GPU-2 on n2, cuda:0 (NVIDIA H200, 139.8 GiB), has failed: an illegal memory access");
  EXPECT_EQ(why_lost(folder(), 2, {1}), "");
  EXPECT_EQ(why_lost(folder(), 3, {3}), "");
}

TEST_F(FailedDevices, AFolderThatIsGoneIsSaid) {
  const auto added = add_failed_device(folder() / "gone", device_of("GPU-1", "n1", 3, 1));
  ASSERT_FALSE(added);
  EXPECT_THAT(added.error().message, ::testing::HasSubstr("failed-devices/GPU-1.json"));
}

}  // namespace
}  // namespace footplate
