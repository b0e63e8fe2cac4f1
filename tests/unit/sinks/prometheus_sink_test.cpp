#include <fcntl.h>
#include <unistd.h>

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

/// What isn't a file isn't replaced by one, and a link leads to the file that is.
TEST_F(PrometheusSinkTest, ADeviceAndALinkStay) {
  std::ofstream(folder / "kept.prom") << "of an earlier export\n";
  std::filesystem::create_symlink("/dev/null", folder / "device.prom");
  std::filesystem::create_symlink("kept.prom", folder / "link.prom");
  for (const char* link : {"device.prom", "link.prom"}) {
    auto sink = open_prometheus({folder / link, "r"});
    ASSERT_TRUE((*sink)->write(row(1, 3)));
    ASSERT_TRUE((*sink)->flush());
    EXPECT_TRUE(std::filesystem::is_symlink(folder / link));
  }
  EXPECT_NE(contents(folder / "kept.prom").find("footplate_train_loss"), std::string::npos);
}

/// An alert on it has to end with the next evaluation that is good.
TEST_F(PrometheusSinkTest, WhatAnEvaluationLacksIsntKeptOfTheOneBefore) {
  auto sink = open_prometheus({folder / "m.prom", "r"});
  MetricsRow failed = row(1, 3), training = row(2, 3), good = row(3, 3);
  failed.values = {{"eval/evaluation_failed", 1}, {"eval/retries", 2}};
  good.values = {{"eval/loss", 2.5}, {"eval/seconds", 0.1}};
  for (const MetricsRow& each : {failed, training}) ASSERT_TRUE((*sink)->write(each));
  ASSERT_TRUE((*sink)->flush());
  EXPECT_NE(contents(folder / "m.prom").find("footplate_eval_evaluation_failed{run=\"r\"} 1\n"),
            std::string::npos);
  ASSERT_TRUE((*sink)->write(good));
  ASSERT_TRUE((*sink)->flush());
  const std::string text = contents(folder / "m.prom");
  EXPECT_EQ(text.find("evaluation_failed"), std::string::npos) << text;
  EXPECT_EQ(text.find("retries"), std::string::npos) << text;
  EXPECT_NE(text.find("footplate_eval_loss{run=\"r\"} 2.5\n"), std::string::npos) << text;
}

/// `footplate export --to prometheus -f -o /dev/stdout > m.prom`.
TEST_F(PrometheusSinkTest, AFileBehindADescriptorIsReplacedEachTime) {
  const int fd = ::open((folder / "m.prom").c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
  auto sink = open_prometheus({"/proc/self/fd/" + std::to_string(fd), "r"});
  for (const double loss : {3.0, 2.0}) {
    ASSERT_TRUE((*sink)->write(row(1, loss)));
    ASSERT_TRUE((*sink)->flush());
  }
  ::close(fd);
  const std::string text = contents(folder / "m.prom");
  EXPECT_NE(text.find("footplate_train_loss{run=\"r\"} 2\n"), std::string::npos) << text;
}

/// A collector refuses a file that has a name twice.
TEST_F(PrometheusSinkTest, NamesThatWouldBecomeOneStayApart) {
  auto sink = open_prometheus({folder / "m.prom", "r"});
  MetricsRow later = row(2, 2), sooner = row(1, 3);
  sooner.values = {{"eval/full_loss", 1.5}};
  later.values = {{"eval/full/loss", 2.5}, {"eval/full_loss", 3.5}, {"eval/full_loss_2", 4.5}};
  ASSERT_TRUE((*sink)->write(sooner));
  ASSERT_TRUE((*sink)->write(later));
  ASSERT_TRUE((*sink)->flush());
  const std::string text = contents(folder / "m.prom");
  for (const char* line :
       {"footplate_eval_full_loss{run=\"r\"} 3.5\n", "footplate_eval_full_loss_2{run=\"r\"} 2.5\n",
        "footplate_eval_full_loss_2_2{run=\"r\"} 4.5\n",
        "# HELP footplate_eval_full_loss_2 The newest eval/full/loss of a run of footplate.\n"})
    EXPECT_NE(text.find(line), std::string::npos) << line << text;
  const std::string type = "# TYPE footplate_eval_full_loss gauge\n";
  EXPECT_EQ(text.find(type), text.rfind(type)) << text;
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
