#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
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

TEST_F(CsvSinkTest, ALinkLeadsToTheTable) {
  std::ofstream(folder / "table.csv") << "of an earlier export\n";
  std::filesystem::create_symlink("table.csv", folder / "m.csv");
  std::filesystem::create_symlink("new.csv", folder / "to_none.csv");
  for (const auto& [link, table] : {std::pair{"m.csv", "table.csv"}, {"to_none.csv", "new.csv"}}) {
    auto sink = open_csv({folder / link, "r"});
    ASSERT_TRUE((*sink)->write(row(1, 2.5)));
    ASSERT_TRUE((*sink)->flush());
    EXPECT_TRUE(std::filesystem::is_symlink(folder / link));
    EXPECT_TRUE(std::filesystem::is_regular_file(std::filesystem::symlink_status(folder / table)));
    EXPECT_EQ(contents(folder / table), "time,start,branch,step,train/loss\n1795575930.5,1,main,1,2.5\n");
  }
}

/// As /dev/stdout and >(gzip > x) are. What has been passed on can't get another header.
TEST_F(CsvSinkTest, APipeGetsTheColumnsOfTheFirstLines) {
  const auto pipe = folder / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  const int reader = ::open(pipe.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  ASSERT_GE(reader, 0);
  auto sink = open_csv({pipe, "r"});
  ASSERT_TRUE((*sink)->flush()) << "nothing has been logged yet";
  ASSERT_TRUE((*sink)->write(row(1, 2.5)));
  ASSERT_TRUE((*sink)->flush());
  MetricsRow evaluated = row(2, 2);
  evaluated.values.emplace_back("eval/loss", 3);
  testing::internal::CaptureStderr();
  for (int flush = 0; flush < 2; ++flush) {
    ASSERT_TRUE((*sink)->write(evaluated));
    ASSERT_TRUE((*sink)->flush());
  }
  const std::string said = testing::internal::GetCapturedStderr();
  EXPECT_NE(said.find("eval/loss"), std::string::npos);
  EXPECT_EQ(said.find("eval/loss"), said.rfind("eval/loss")) << "once: " << said;
  EXPECT_TRUE(std::filesystem::is_fifo(pipe));
  std::array<char, 1000> bytes{};
  const ssize_t got = ::read(reader, bytes.data(), bytes.size());
  ::close(reader);
  ASSERT_GE(got, 0);
  EXPECT_EQ(std::string(bytes.data(), static_cast<std::size_t>(got)),
            "time,start,branch,step,train/loss\n"
            "1795575930.5,1,main,1,2.5\n"
            "1795575931.5,1,main,2,2\n"
            "1795575931.5,1,main,2,2\n");
}

TEST_F(CsvSinkTest, ATableThatSomebodyHasTakenAwayIsAnError) {
  for (const char* metric : {"train/loss", "eval/loss"}) {
    auto sink = open_csv({folder / "m.csv", "r"});
    ASSERT_TRUE((*sink)->write(row(1, 2.5)));
    ASSERT_TRUE((*sink)->flush());
    std::filesystem::remove(folder / "m.csv");
    MetricsRow later = row(2, 2);
    later.values = {{metric, 3}};
    ASSERT_TRUE((*sink)->write(later));
    const auto flushed = (*sink)->flush();
    ASSERT_FALSE(flushed) << metric;
    EXPECT_NE(flushed.error().message.find("m.csv: No such file"), std::string::npos);
    EXPECT_TRUE(std::filesystem::is_empty(folder)) << metric;
  }
}

}  // namespace
}  // namespace footplate::sinks
