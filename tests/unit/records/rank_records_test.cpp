#include "runtime/records/rank_records.h"

#include <fcntl.h>

#include "fixture.h"
#include "run_files/json_file.h"
#include "run_files/run_file.h"
#include "runtime/schema/schema_table.h"

namespace footplate {
namespace {

using test::json_lines;
using test::lines_of;

/// stdout goes elsewhere while this lives.
class Stdout {
 public:
  explicit Stdout(int other) : kept_(::dup(STDOUT_FILENO)) {
    if (other < 0)
      ::close(STDOUT_FILENO);
    else
      ::dup2(other, STDOUT_FILENO);
  }
  ~Stdout() {
    ::dup2(kept_, STDOUT_FILENO);
    ::close(kept_);
  }

 private:
  int kept_;
};

RunResult ended(int code, const std::string& reason, std::int64_t step) {
  RunResult result;
  result.code = code;
  result.reason = reason;
  result.step = step;
  return result;
}

OrderApplied applied(std::uint64_t order, std::vector<Moved> moved) {
  OrderApplied applied;
  applied.order = order;
  applied.step = 10;
  applied.digest = "00ff";
  applied.moved = std::move(moved);
  return applied;
}

class RankRecordsTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(
        write_json_file(run_ / "run.json", {{"id", "k7"}, {"launcher_pid", 9}, {"state", "starting"}}));
    output_ = ::open((run_ / "stdout").c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  }
  void TearDown() override { ::close(output_); }
  std::unique_ptr<RankRecords> open(int rank, int start = 1) {
    auto records = RankRecords::open(run_, rank, start, settings_);
    EXPECT_TRUE(records);
    return *std::move(records);
  }
  /// A short life of rank 0, from the first to the last call.
  void live(int start) {
    const auto records = open(0, start);
    records->started({.start = start}, {{{"rank", 0}, {"host", "h"}, {"pid", 1}}});
    records->info("going");
    records->write({{"step", 10}, {"train/loss", 2.5}});
    OrderReport report;
    report.state = OrderState::applied;
    report.id = 3;
    report.applied = Applied{3, 10, 1, 1, "d", {}, {}};
    records->observe(report);
    records->observe(LoggedMetrics{{{"step", 10}, {"train/loss", 2.5}}});
    records->write({{"step", 20}, {"eval/loss", 1.75}});
    EXPECT_EQ(records->last_order(), 3u);
    records->ended(ended(0, "done", 20));
  }

  test::TemporaryFolder folder_;
  std::filesystem::path run_ = folder_.path();
  int output_ = -1;
  Settings settings_ = Settings::defaults(runtime_schema());
};

TEST_F(RankRecordsTest, LeavesTheFilesOfTheRunDirectory) {
  {
    Stdout redirected(output_);
    live(1);
    live(2);
  }
  const Json run = *read_json_file(run_ / "run.json");
  EXPECT_EQ(run["id"], "k7");
  EXPECT_EQ(run["launcher_pid"], 9);
  EXPECT_EQ(run["state"], "ending");
  EXPECT_EQ(run["step"], 20);
  EXPECT_EQ(run["world_size"], 1);
  EXPECT_EQ(run["ranks"][0]["pid"], 1);
  EXPECT_EQ(json_lines(run_ / "starts.jsonl").size(), 2u);
  EXPECT_EQ(json_lines(run_ / "metrics.jsonl").size(), 4u);
  const auto events = json_lines(run_ / "events.jsonl");
  ASSERT_EQ(events.size(), 4u);
  EXPECT_EQ(events[0]["topic"], "order");
  EXPECT_EQ(events[3]["topic"], "end");
  EXPECT_EQ(events[3]["sequence"], 4);
  EXPECT_EQ((*read_json_file(run_ / "result.json"))["reason"], "done");
  EXPECT_NE(lines_of(run_ / "log" / "rank-0.log")[0].find("info going"), std::string::npos);
  const auto printed = lines_of(run_ / "stdout");
  ASSERT_EQ(printed.size(), 6u);
  EXPECT_NE(printed[0].find("Z step 10/1000 · loss 2.5"), std::string::npos) << printed[0];
  EXPECT_NE(printed[1].find("order 3, applied at step 10 on 1/1 ranks"), std::string::npos) << printed[1];
  EXPECT_NE(printed[2].find("Z end: done · step 20"), std::string::npos) << printed[2];
}

TEST_F(RankRecordsTest, AClosedStdoutIsBorne) {
  {
    Stdout closed(-1);
    live(1);
  }
  EXPECT_EQ((*read_json_file(run_ / "result.json"))["code"], 0);
  // Nothing was printed into the file that took its number.
  EXPECT_EQ(json_lines(run_ / "metrics.jsonl").size(), 2u);
  EXPECT_EQ(lines_of(run_ / "log" / "rank-0.log").size(), 1u);
}

TEST_F(RankRecordsTest, OtherRanksHaveTheirLogAlone) {
  {
    const auto records = open(1);
    records->started({}, Json::array());
    records->write({{"step", 1}});
    records->applied(applied(3, {}));
    records->ended(ended(0, "done", 10));
  }
  EXPECT_NE(lines_of(run_ / "log" / "rank-1.log").at(0).find("order 3 applied at step 10, digest 00ff"),
            std::string::npos);
  for (const char* name : {"metrics.jsonl", "events.jsonl", "starts.jsonl", "result.json"})
    EXPECT_FALSE(std::filesystem::exists(run_ / name)) << name;
}

TEST_F(RankRecordsTest, FollowsItsSettings) {
  {
    Stdout redirected(output_);
    const auto records = open(0);
    records->info("one");
    records->applied(applied(1, {{"log.level", std::string("info"), std::string("warn")},
                                 {"train.steps", std::int64_t{1000}, std::int64_t{4000}}}));
    records->info("two");
    records->warn("three");
    records->write({{"step", 10}, {"train/loss", 2.5}});
  }
  const auto log = lines_of(run_ / "log" / "rank-0.log");
  ASSERT_EQ(log.size(), 3u);
  EXPECT_NE(log[2].find("warning three"), std::string::npos);
  const auto printed = lines_of(run_ / "stdout");
  ASSERT_EQ(printed.size(), 2u);
  EXPECT_NE(printed[0].find("warning: three"), std::string::npos);
  EXPECT_NE(printed[1].find("step 10/4000"), std::string::npos);
}

TEST_F(RankRecordsTest, APartialEvaluationIsNotTheRunsLoss) {
  Stdout redirected(output_);
  const auto records = open(0);
  records->write({{"step", 20}, {"eval/loss", 1.75}});
  records->write({{"step", 25}, {"eval/loss", 1.25}, {"eval/partial", 1}});
  records->write({{"step", 30}, {"eval/other_loss", 1.0}});
  EXPECT_EQ(records->last_evaluation().values, (Json{{"eval/loss", 1.75}, {"eval/step", 20}}));
  EXPECT_FALSE(records->full_loss());
  records->write({{"step", 40}, {"eval/full_loss", 1.5}});
  EXPECT_EQ(records->full_loss(), 1.5);
  EXPECT_EQ(records->last_evaluation().values.at("eval/step"), 20);
}

TEST_F(RankRecordsTest, ARankThatWritesNothingKnowsTheLastEvaluation) {
  Stdout redirected(output_);
  const auto records = open(1);
  records->keep({{"step", 20}, {"eval/loss", 1.75}});
  EXPECT_EQ(records->last_evaluation().values, (Json{{"eval/loss", 1.75}, {"eval/step", 20}}));
  EXPECT_FALSE(std::filesystem::exists(run_ / "metrics.jsonl"));
}

TEST_F(RankRecordsTest, TheBestEvaluationIsInTheRunsRecord) {
  Stdout redirected(output_);
  const auto records = open(0);
  records->best(BestEvaluation{1.5, 20, "main"});
  records->flush();
  EXPECT_EQ(read_run_file(run_)->best_evaluation, (BestEvaluation{1.5, 20, "main"}));
  records->best(std::nullopt);  // gone back behind it
  records->flush();
  EXPECT_FALSE(read_run_file(run_)->best_evaluation);
}

TEST_F(RankRecordsTest, AnUnwritableRunIsAnError) {
  const auto records = RankRecords::open("/proc/nowhere", 0, 1, settings_);
  ASSERT_FALSE(records);
}

TEST_F(RankRecordsTest, AResultThatIsThereStays) {
  write_result_if_missing(run_, ended(75, "a rank was lost", 5));
  write_result_if_missing(run_, ended(1, "later", 5));
  EXPECT_EQ((*read_json_file(run_ / "result.json"))["reason"], "a rank was lost");
}

}  // namespace
}  // namespace footplate
