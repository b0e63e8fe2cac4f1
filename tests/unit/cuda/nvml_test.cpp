#include "runtime/cuda/nvml.h"

#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace footplate {
namespace {

using ::testing::HasSubstr;

/// How often the stub's NVML is in use.
int opened() {
  void* library = ::dlopen(FOOTPLATE_NVML_STUB, RTLD_NOW | RTLD_LOCAL);
  const auto count = reinterpret_cast<int (*)()>(::dlsym(library, "nvml_stub_opened"));
  return count();
}

TEST(Nvml, ReadsTheDeviceOfThatPlace) {
  {
    const auto gauges = open_nvml("0000:3b:00.0", FOOTPLATE_NVML_STUB);
    ASSERT_TRUE(gauges) << gauges.error().message;
    EXPECT_EQ(opened(), 1);
    const GaugeReading now = (*gauges)->read();
    EXPECT_EQ(now.utilisation, 93);
    EXPECT_EQ(now.memory_mib, 20 * 1024);
    EXPECT_EQ(now.power_w, 412.5);
    EXPECT_EQ(now.temperature_c, 61);
  }
  EXPECT_EQ(opened(), 0);
}

TEST(Nvml, LeavesOutWhatADeviceDoesNotTell) {
  const auto gauges = open_nvml("0000:5e:00.0", FOOTPLATE_NVML_STUB);
  ASSERT_TRUE(gauges) << gauges.error().message;
  const GaugeReading now = (*gauges)->read();
  EXPECT_EQ(now.utilisation, std::nullopt);
  EXPECT_EQ(now.power_w, 412.5);
}

TEST(Nvml, SaysWhyThereIsNone) {
  const auto elsewhere = open_nvml("0000:99:00.0", FOOTPLATE_NVML_STUB);
  ASSERT_FALSE(elsewhere);
  EXPECT_EQ(elsewhere.error().message, "NVML has no device 0000:99:00.0: Not Found");
  EXPECT_EQ(opened(), 0) << "what was started is ended";
  EXPECT_THAT(open_nvml("0000:3b:00.0", "libno-such-ml.so.1").error().message,
              HasSubstr("libno-such-ml.so.1"));
  EXPECT_THAT(open_nvml("0000:3b:00.0", "libm.so.6").error().message, HasSubstr("is no NVML"));
}

}  // namespace
}  // namespace footplate
