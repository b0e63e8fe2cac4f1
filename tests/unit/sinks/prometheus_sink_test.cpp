#include <limits>

#include "tests/unit/sinks/sink_fixture.h"

namespace footplate::sinks {
namespace {

using PrometheusSinkTest = SinkTest;

TEST_F(PrometheusSinkTest, TheNewestValuesAreThere) {
  auto sink = open_prometheus({folder / "m.prom", R"(a "run")"});
  ASSERT_TRUE((*sink)->write(row(1, 3)));
  ASSERT_TRUE((*sink)->write(row(2, 2.5)));
  ASSERT_TRUE((*sink)->flush());
  const std::string text = contents(folder / "m.prom");
  EXPECT_NE(text.find("# HELP footplate_train_loss The newest train/loss of a run of footplate.\n"
                      "# TYPE footplate_train_loss gauge\n"
                      "footplate_train_loss{run=\"a \\\"run\\\"\"} 2.5\n"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("footplate_step{run=\"a \\\"run\\\"\"} 2\n"), std::string::npos) << text;
  EXPECT_FALSE(std::filesystem::exists(folder / "m.prom.new"));
}

TEST_F(PrometheusSinkTest, WhatIsNoNumberHasItsWord) {
  auto sink = open_prometheus({folder / "m.prom", "r"});
  ASSERT_TRUE((*sink)->write(row(1, std::numeric_limits<double>::quiet_NaN())));
  ASSERT_TRUE((*sink)->flush());
  EXPECT_NE(contents(folder / "m.prom").find("footplate_train_loss{run=\"r\"} NaN\n"), std::string::npos);
}

TEST_F(PrometheusSinkTest, AFileThatIsInUseStaysWholeWhereTheNewOneFails) {
  auto sink = open_prometheus({folder / "no" / "m.prom", "r"});
  EXPECT_FALSE((*sink)->flush());
}

}  // namespace
}  // namespace footplate::sinks
