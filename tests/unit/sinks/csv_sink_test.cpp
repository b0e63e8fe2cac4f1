#include <cmath>

#include "tests/unit/sinks/sink_fixture.h"

namespace footplate::sinks {
namespace {

using CsvSinkTest = SinkTest;

TEST_F(CsvSinkTest, AMetricHasAColumn) {
  auto sink = open_csv({folder / "m.csv", "r"});
  ASSERT_TRUE(sink);
  ASSERT_TRUE((*sink)->write(row(1, 2.5)));
  ASSERT_TRUE((*sink)->write(row(2, std::nan(""))));
  ASSERT_TRUE((*sink)->flush());
  EXPECT_EQ(contents(folder / "m.csv"),
            "time,start,branch,step,train/loss\n"
            "1795575930.5,1,main,1,2.5\n"
            "1795575931.5,1,main,2,nan\n");
}

TEST_F(CsvSinkTest, AMetricThatComesLaterHasAColumnInEarlierLines) {
  auto sink = open_csv({folder / "m.csv", "r"});
  ASSERT_TRUE((*sink)->write(row(1, 2.5)));
  ASSERT_TRUE((*sink)->flush());
  MetricsRow evaluated = row(2, 2);
  evaluated.values = {{"eval/loss", 3}};
  ASSERT_TRUE((*sink)->write(evaluated));
  ASSERT_TRUE((*sink)->flush());
  EXPECT_EQ(contents(folder / "m.csv"),
            "time,start,branch,step,train/loss,eval/loss\n"
            "1795575930.5,1,main,1,2.5,\n"
            "1795575931.5,1,main,2,,3\n");
}

TEST_F(CsvSinkTest, AFolderThatIsNotThereIsAnError) {
  auto sink = open_csv({folder / "no" / "m.csv", "r"});
  ASSERT_TRUE(sink);
  const auto flushed = (*sink)->flush();
  ASSERT_FALSE(flushed);
  EXPECT_NE(flushed.error().message.find("m.csv: No such file"), std::string::npos);
}

}  // namespace
}  // namespace footplate::sinks
