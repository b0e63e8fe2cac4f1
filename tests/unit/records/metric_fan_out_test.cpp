#include "runtime/records/metric_fan_out.h"

#include <gtest/gtest.h>

#include <string>

namespace footplate {
namespace {

TEST(MetricFanOut, EachReceiverHasEachLineOnceInOrder) {
  MetricFanOut metrics;
  std::string seen;
  for (const char* name : {"file", "console"})
    metrics.add([&seen, name](const Json& line) { seen += name + line.at("step").dump() + " "; });
  metrics.write({{"step", 1}});
  metrics.write({{"step", 2}});
  EXPECT_EQ(seen, "file1 console1 file2 console2 ");
}

}  // namespace
}  // namespace footplate
