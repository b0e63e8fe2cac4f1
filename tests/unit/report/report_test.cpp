#include <gmock/gmock.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "console/report/chart.h"
#include "console/report/page.h"

namespace footplate::report {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(Series, ThinsOutAndLosesNoSpike) {
  Series series;
  for (int step = 0; step < 1'000'000; ++step) series.add(step, step == 777'777 ? 1000 : step % 2);
  EXPECT_LE(series.pieces().size(), Series::kMostPieces);
  EXPECT_GE(series.pieces().size(), Series::kMostPieces / 3);
  double most = 0, sum = 0;
  std::int64_t count = 0;
  double last = -1;
  for (const auto& piece : series.pieces()) {
    most = std::max(most, piece.most);
    sum += piece.sum;
    count += piece.count;
    EXPECT_EQ(piece.first_step, last + 1);
    last = piece.last_step;
  }
  EXPECT_EQ(most, 1000);
  EXPECT_EQ(count, 1'000'000);
  EXPECT_EQ(sum, 500'000 - 1 + 1000);
}

TEST(Chart, DrawsWhatThereIs) {
  EXPECT_EQ(chart("train/loss", {}, {}, 10), "");
  Series flat, none;
  flat.add(5, 2);
  EXPECT_EQ(chart("x", {{"a", 0, false, {{&none, 1e9}}}}, {}, 10), "");
  const std::string one =
      chart("a<b", {{"a", 0, true, {{&flat, 1e9}}}}, {{5, "said \"so\"", true}, {11, "later", false}}, 10);
  EXPECT_THAT(one, HasSubstr("a&lt;b"));
  EXPECT_THAT(one, HasSubstr("said &quot;so&quot;"));
  EXPECT_THAT(one, HasSubstr("<circle"));
  EXPECT_THAT(one, Not(HasSubstr("later")));
  EXPECT_THAT(one, Not(HasSubstr("nan")));
  EXPECT_THAT(one, Not(HasSubstr("inf")));
}

class Report : public testing::Test {
 protected:
  Report() : folder_(std::filesystem::temp_directory_path() / ("fp-report-" + std::to_string(::getpid()))) {
    std::filesystem::create_directories(folder_);
    run_.directory = folder_;
    run_.run.name = "t";
    run_.run.state = RunState::running;
    run_.run.step = 300;
  }
  ~Report() override { std::filesystem::remove_all(folder_); }

  void write(const char* name, const std::string& text) { std::ofstream(folder_ / name) << text; }
  static std::string log_line(const char* branch, int step, double loss) {
    return Json{{"branch", branch},        {"step", step},
                {"time", 100.0 + step},    {"train/loss", loss},
                {"perf/step_ms", 10.0},    {"perf/forward_ms", 6.0},
                {"perf/backward_ms", 3.0}, {"start", branch == std::string("main") ? 1 : 2}}
               .dump() +
           "\n";
  }

  std::filesystem::path folder_;
  RunRecord run_;
};

TEST_F(Report, TellsStretchesChangesAndFailures) {
  write("metrics.jsonl", log_line("main", 100, 2) + log_line("main", 200, 3) + "{ torn\n" +
                             log_line("from-100", 150, 1.5) + log_line("from-100", 250, 1.25) +
                             R"({"step":250,"eval/loss":1.2,"eval/seconds":7,"branch":"from-100"})"
                             "\n" +
                             R"({"step":260,"train/loss":"@nan","branch":"from-100"})"
                             "\n" +
                             R"({"step":27)");
  write(
      "starts.jsonl",
      R"({"start":1,"step":0,"time":"2026-11-24T07:00:00Z","resumed":null,"world_size":2})"
      "\n"
      R"({"start":2,"step":100,"time":"2026-11-24T08:00:00Z","resumed":"/x/step-00000100","loaded":true,"world_size":2})"
      "\n");
  write(
      "events.jsonl",
      R"({"topic":"order","time":"2026-11-24T07:10:00Z","data":{"state":"applied","id":1,"order":{"user":"<ann>","calls":[{"action":"ckpt.save","arguments":{"tag":"a","best":null}}]},"applied":{"step":120,"moved":[{"name":"optim.lr_scale","before":1.0,"after":0.5}]}}})"
      "\n"
      R"({"topic":"order","time":"2026-11-24T07:11:00Z","data":{"state":"refused","id":2,"error":"no such"}})"
      "\n"
      R"({"topic":"rank","time":"2026-11-24T07:12:00Z","data":{"rank":1,"state":"lost","step":180}})"
      "\n"
      R"({"topic":"ckpt","time":"2026-11-24T07:12:00Z","data":{"step":100,"seconds":2}})"
      "\n"
      R"({"topic":"eval","time":"2026-11-24T07:13:00Z","data":{"step":200,"failed":true,"reason":"rank 1: x"}})"
      "\n"
      R"({"topic":"later","time":"2026-11-24T07:13:00Z","data":5})"
      "\n"
      R"({"topic":"order","data":{"state":"applied","order":7}})"
      "\n");
  const RunHistory history = read_run_history(run_, {});
  EXPECT_EQ(history.unreadable, 2U);
  ASSERT_EQ(history.stretches.size(), 2U);
  EXPECT_EQ(history.stretches[0].left_at, 150);
  EXPECT_EQ(history.stretches[1].metrics.at("train/loss").pieces().size(), 2U) << "NaN is left out";
  EXPECT_EQ(history.trained_steps, 350);
  EXPECT_DOUBLE_EQ(history.phase_s.at("forward"), 350 * 6.0 / 1000);
  EXPECT_EQ(history.phase_s.at("evaluation"), 7);
  EXPECT_EQ(history.phase_s.at("saving"), 2);
  ASSERT_EQ(history.changes.size(), 1U);
  EXPECT_EQ(history.changes[0].text, "optim.lr_scale 1 → 0.5, ckpt.save(tag = a)");
  ASSERT_EQ(history.happenings.size(), 4U);
  EXPECT_EQ(history.happenings[0].text, "refused: no such");
  EXPECT_TRUE(history.happenings[1].failure);
  EXPECT_EQ(history.happenings[2].text, "rank 1: x");
  EXPECT_TRUE(history.happenings[2].failure);
  EXPECT_EQ(history.happenings[3].text, "start 2 goes on from /x/step-00000100 by ckpt.load");

  const std::string page = report::page({history, history}, kUsualMetrics);
  for (const char* part : {"&lt;ann&gt;", "1 → 0.5", "class=\"c0 pale\"", "rank 1 lost",
                           "4 lines of the runs' files", "eval/loss"})
    EXPECT_THAT(page, HasSubstr(part));
  EXPECT_THAT(page, Not(HasSubstr("<ann>")));
  EXPECT_THAT(page, Not(HasSubstr("train/lr<"))) << "no run has that metric";
}

TEST_F(Report, OfARunThatHasWrittenNothing) {
  const std::string page = report::page({read_run_history(run_, {})}, kUsualMetrics);
  EXPECT_THAT(page, HasSubstr("No metric has been written yet."));
  EXPECT_THAT(page, HasSubstr("Nothing was changed or called."));
}

}  // namespace
}  // namespace footplate::report
