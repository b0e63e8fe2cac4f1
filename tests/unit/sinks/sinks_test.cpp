#include "console/sinks/sink.h"

#include <gtest/gtest.h>

namespace footplate::sinks {
namespace {

TEST(Sinks, ARowHasTheNumbersOfItsLine) {
  const MetricsRow row = row_of({{{"step", 12},
                                  {"start", 2},
                                  {"branch", "from-10"},
                                  {"time", 5.5},
                                  {"train/loss", 2.5},
                                  {"eval/loss", "@nan"},
                                  {"eval/reason", "a rank was lost"}}});
  EXPECT_EQ(row.step, 12);
  EXPECT_EQ(row.start, 2);
  EXPECT_EQ(row.branch, "from-10");
  EXPECT_EQ(row.time, 5.5);
  ASSERT_EQ(row.values.size(), 2U);  // what isn't a number is left out
  EXPECT_EQ(row.values[1], std::pair(std::string("train/loss"), 2.5));
  EXPECT_TRUE(std::isnan(row.values[0].second));
}

TEST(Sinks, AKindIsFoundByItsName) {
  for (const SinkKind& kind : sink_kinds()) EXPECT_EQ(*find_sink_kind(kind.name), &kind);
  EXPECT_EQ(find_sink_kind("tensorbord").error().message,
            "there is no format 'tensorbord'; did you mean tensorboard?");
  EXPECT_NE(find_sink_kind("zzz").error().message.find("; there are csv, "), std::string::npos);
}

}  // namespace
}  // namespace footplate::sinks
