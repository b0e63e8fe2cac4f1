#include <gmock/gmock.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>

#include "console/report/chart.h"
#include "console/report/lineage.h"
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

TEST(Series, CountsWhatIsNoNumber) {
  Series series;
  EXPECT_TRUE(series.empty());
  EXPECT_TRUE(std::isnan(series.recent_mean()));
  for (int step = 0; step < 30; ++step) series.add(step, step >= 10 && step < 13 ? std::nan("") : 1.0 * step);
  series.add(30, INFINITY);
  ASSERT_EQ(series.gaps().size(), 2U);
  EXPECT_EQ(series.gaps()[0].first_step, 10);
  EXPECT_EQ(series.gaps()[0].last_step, 12);
  EXPECT_EQ(series.gaps()[0].count, 3);
  EXPECT_EQ(series.pieces().size(), 27U);
  EXPECT_EQ(series.last(), 29);
  EXPECT_EQ(series.recent_mean(), 24.5);
  for (int step = 31; step < 2000; ++step) series.add(step, step % 2 == 0 ? std::nan("") : 1.0);
  EXPECT_EQ(series.gaps().size(), Series::kMostGaps);
}

TEST(Series, IsSmoothedWithoutALag) {
  Series slope;
  for (int step = 0; step < 100; ++step) slope.add(step, step);
  EXPECT_NEAR(smoothed(slope.pieces(), 10)[50], 50, 0.1);
  Series jump;
  for (int step = 0; step < 100; ++step) jump.add(step, step <= 50 ? 2 : 9);
  const auto apart = smoothed(jump.pieces(), 10, {50});
  EXPECT_NEAR(apart[50], 2, 1e-9);
  EXPECT_NEAR(apart[51], 9, 1e-9);
  Series series;
  for (int step = 0; step < 100; ++step) series.add(step, 5 + step % 2);
  const auto means = smoothed(series.pieces(), 20);
  ASSERT_EQ(means.size(), 100U);
  EXPECT_NEAR(means[0], 5.5, 0.05);
  for (const double mean : means) EXPECT_NEAR(mean, 5.5, 0.05);
  EXPECT_EQ(thinned(series.pieces(), 30).size(), 25U);
}

/// Order 1 was given first, and for a later step: what order 2 has changed before is in the checkpoint, too.
TEST(Lineage, WhatACheckpointHoldsGoesByTheOrderOfApplication) {
  Lineage lineage("/nowhere");
  const auto apply = [&](std::uint64_t id, std::int64_t step, const char* setting, double after) {
    Applied applied;
    applied.id = id;
    applied.step = step;
    applied.moved = {{setting, 1.0, after}};
    lineage.order(applied, "2026-11-30T09:10:00.000Z");
  };
  lineage.start({.start = 1, .time = "2026-11-30T09:00:00.000Z"});
  apply(2, 100, "train.clip_norm", 0.5);
  apply(1, 1000, "optim.lr_scale", 0.25);
  apply(3, 1300, "train.clip_norm", 0.125);
  lineage.start({.start = 2,
                 .time = "2026-11-30T10:00:00.000Z",
                 .step = 1200,
                 .resumed = "/nowhere/checkpoints/main/step-00001200",
                 .journal = 1});
  lineage.settle();
  const RecordedSettings now = lineage.now();
  EXPECT_EQ(now.at("train.clip_norm").value, Value(0.5));
  EXPECT_EQ(now.at("optim.lr_scale").value, Value(0.25));
}

TEST(Chart, DrawsWhatThereIs) {
  EXPECT_EQ(chart("train/loss", {}, {}, {}), "");
  Series flat, none;
  flat.add(5, 2);
  EXPECT_EQ(chart("x", {{"a", 0, false, false, {{&none}}}}, {}, {}), "");
  const std::string one =
      chart("a<b", {{"a", 0, true, false, {{&flat}}}},
            {{5, "said \"so\"", "", MomentKind::failure}, {11, "later", "", MomentKind::change}}, {0, 10});
  EXPECT_THAT(one, HasSubstr("a&lt;b"));
  EXPECT_THAT(one, HasSubstr("said &quot;so&quot;"));
  EXPECT_THAT(one, HasSubstr("<circle"));
  EXPECT_THAT(one, Not(HasSubstr("later")));
  EXPECT_THAT(one, Not(HasSubstr("nan")));
  EXPECT_THAT(one, Not(HasSubstr("inf")));
}

TEST(Chart, AnAxisIgnoresWhatTheRunLeft) {
  Series kept, spike, near;
  for (int step = 0; step < 100; ++step) kept.add(step, 2.0 - step / 100.0);
  for (int step = 50; step < 60; ++step) spike.add(step, step == 55 ? 87.5 : 40);
  for (int step = 50; step < 60; ++step) near.add(step, 2.1);
  const std::vector<Curve> curves = {{"main", 0, false, false, {{&spike, 50, 50}, {&kept}}},
                                     {"near", 1, false, false, {{&near, 50}}}};
  const std::string svg = chart("train/loss", curves, {}, {0, 100});
  EXPECT_THAT(svg, Not(HasSubstr("class=\"clip c1\""))) << "what lies near is on the axis";
  for (const char* beyond : {">40</text><path", ">80</text><path", ">20</text><path"})
    EXPECT_THAT(svg.substr(0, svg.find("clip-path")), Not(HasSubstr(beyond)));
  EXPECT_THAT(svg, HasSubstr("<g class=\"clip c0\">"));
  EXPECT_THAT(svg, HasSubstr("up to 87.5, beyond the axis"));
  const std::string whole = chart("train/lr", curves, {}, {0, 100, true, true, 100});
  EXPECT_THAT(whole, Not(HasSubstr("class=\"clip")));
}

TEST(Chart, TheFirstLossesDontPressTheRestFlat) {
  Series loss;
  for (int step = 0; step < 400; ++step)
    loss.add(step, 1.5 + 0.5 * std::exp(-step / 100.0) + (step < 4 ? 9 : 0));
  const std::string svg = chart("train/loss", {{"a", 0, false, false, {{&loss}}}}, {}, {0, 400});
  EXPECT_THAT(svg, HasSubstr("up to 11, beyond the axis"));
  EXPECT_THAT(svg, HasSubstr("class=\"line m1\""));
  EXPECT_THAT(svg, HasSubstr("class=\"raw\""));
}

TEST(Chart, BreaksWhereValuesAreNoNumbers) {
  Series loss, none;
  for (int step = 0; step < 20; ++step) loss.add(step, step == 7 || step == 8 ? std::nan("") : 1.0 + step);
  for (int step = 0; step < 20; ++step) none.add(step, NAN);
  const std::string svg = chart("train/loss", {{"a", 0, false, false, {{&loss}}}}, {}, {0, 20, false});
  const std::string line = svg.substr(svg.find("class=\"line\""));
  const std::string path = line.substr(0, line.find("/>"));
  EXPECT_EQ(std::count(path.begin(), path.end(), 'M'), 2) << path;
  EXPECT_THAT(svg, HasSubstr("2 values are NaN or infinite</span>"));
  EXPECT_THAT(svg, HasSubstr("class=\"nan\""));
  const std::string nothing = chart("train/loss", {{"a", 0, false, false, {{&none}}}}, {}, {0, 20});
  EXPECT_THAT(nothing, HasSubstr("20 values are NaN or infinite"));
  EXPECT_THAT(nothing, Not(HasSubstr("<svg")));
}

TEST(Chart, AChangeOfTheLearningRateStandsOut) {
  Series loss;
  for (int step = 0; step < 20; ++step) loss.add(step, step);
  const std::string svg = chart("train/loss", {{"a", 0, false, false, {{&loss}}}},
                                {{5, "ann", "base_lr 1 → 2", MomentKind::learning_rate},
                                 {6, "eval", "", MomentKind::quiet},
                                 {5.1, "bob", "base_lr 2 → 3", MomentKind::learning_rate},
                                 {5.2, "eve", "base_lr 3 → 4", MomentKind::learning_rate}},
                                {0, 20});
  EXPECT_THAT(svg, HasSubstr("<g class=\"mark rate\">"));
  EXPECT_THAT(svg, HasSubstr(">base_lr 1 → 2</text>"));
  EXPECT_THAT(svg, HasSubstr(">base_lr 2 → 3</text>"));
  EXPECT_THAT(svg, Not(HasSubstr(">base_lr 3 → 4</text>"))) << "two rows are all the room there is";
  // The line goes from the top to the foot, the tick stands at the foot.
  EXPECT_THAT(svg, testing::ContainsRegex("mark rate\"><path d=\"M[0-9.]+,42.0V262.0"));
  EXPECT_THAT(svg, testing::ContainsRegex("mark quiet\"><path d=\"M[0-9.]+,256.0V262.0"));
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
      R"({"topic":"call","time":"2026-11-24T07:13:00Z","data":{"action":"eval.now","call":0,"order":5,"state":"failed","error":"rank 1: x"}})"
      "\n"
      R"({"topic":"order","time":"2026-11-24T07:14:00Z","data":{"state":"committed","id":6,"step":210}})"
      "\n"
      R"({"topic":"call","time":"2026-11-24T07:14:00Z","data":{"action":"task.mix","call":0,"order":6,"state":"failed","error":"rank 0: y"}})"
      "\n"
      R"({"topic":"later","time":"2026-11-24T07:15:00Z","data":5})"
      "\n"
      R"({"topic":"order","data":{"state":"applied","order":7}})"
      "\n");
  const RunHistory history = read_run_history(run_);
  EXPECT_EQ(history.unreadable, 2U);
  ASSERT_EQ(history.stretches.size(), 2U);
  EXPECT_EQ(history.stretches[0].left_at, 150);
  EXPECT_EQ(history.stretches[1].metrics.at("train/loss").pieces().size(), 2U);
  EXPECT_EQ(history.stretches[1].metrics.at("train/loss").gaps().size(), 1U) << "NaN";
  EXPECT_EQ(history.trained_steps, 350);
  EXPECT_DOUBLE_EQ(history.phase_s.at("forward"), 350 * 6.0 / 1000);
  EXPECT_EQ(history.phase_s.at("evaluation"), 7);
  EXPECT_EQ(history.phase_s.at("saving"), 2);
  ASSERT_EQ(history.changes.size(), 1U);
  EXPECT_EQ(history.changes[0].text, "optim.lr_scale 1 → 0.5, ckpt.save(tag = a)");
  ASSERT_EQ(history.happenings.size(), 5U);
  EXPECT_EQ(history.happenings[0].text, "refused: no such");
  EXPECT_EQ(history.happenings[1].kind, MomentKind::failure);
  EXPECT_EQ(history.happenings[2].text, "rank 1: x");
  EXPECT_EQ(history.happenings[2].kind, MomentKind::failure);
  EXPECT_EQ(history.happenings[3].text, "task.mix failed: rank 0: y") << "a call's failure, once";
  EXPECT_EQ(history.happenings[3].step, 210);
  EXPECT_EQ(history.happenings[3].kind, MomentKind::failure);
  EXPECT_EQ(history.happenings[4].text, "start 2 goes on from /x/step-00000100 by ckpt.load");

  const std::string page = report::page({history, history}, kUsualMetrics);
  for (const char* part :
       {"&lt;ann&gt;", "1 → 0.5", "rank 1 lost", "4 lines of the runs' files", "eval/loss"})
    EXPECT_THAT(page, HasSubstr(part));
  EXPECT_THAT(page, Not(HasSubstr("<ann>")));
  EXPECT_THAT(page, Not(HasSubstr("train/lr<"))) << "no run has that metric";
}

/// After a lost rank with a share of the state: the same start makes steps once more.
TEST_F(Report, CountsStepsThatAStartMakesTwice) {
  std::string lines;
  for (const int step : {50, 100, 150, 110, 160}) lines += log_line("main", step, 2);
  write("metrics.jsonl", lines);
  write("starts.jsonl", R"({"start":1,"step":0,"time":"2026-11-24T07:00:00Z","resumed":null,"world_size":2})"
                        "\n");
  const RunHistory history = read_run_history(run_);
  ASSERT_EQ(history.stretches.size(), 2U);
  EXPECT_EQ(history.stretches[0].left_at, 110);
  EXPECT_EQ(history.trained_steps, 150 + 50 + 50);
}

/// What goes on beside training costs it what it waits.
TEST_F(Report, CountsOfWhatIsDoneBesideTrainingTheWait) {
  write("metrics.jsonl", R"({"step":100,"time":100,"eval/loss":1.2,"eval/seconds":50,"eval/waited_s":0.5})"
                         "\n"
                         R"({"step":200,"time":200,"eval/loss":1.1,"eval/seconds":7})"
                         "\n");
  write("events.jsonl",
        R"({"topic":"ckpt","time":"2026-11-24T07:12:00Z","data":{"step":100,"seconds":60,"waited_s":0.125}})"
        "\n"
        R"({"topic":"ckpt","time":"2026-11-24T07:13:00Z","data":{"step":200,"seconds":2}})"
        "\n");
  const RunHistory history = read_run_history(run_);
  EXPECT_EQ(history.phase_s.at("evaluation"), 7.5);
  EXPECT_EQ(history.phase_s.at("saving"), 2.125);
}

TEST_F(Report, LeavesOutTheTimeBetweenStarts) {
  std::string lines;
  for (const auto& [start, time] : {std::pair(1, 1000), {1, 1060}, {2, 37'000}, {2, 37'030}})
    lines += Json{{"step", time}, {"time", time}, {"start", start}, {"train/loss", 2.0}}.dump() + "\n";
  write("metrics.jsonl", lines);
  const RunHistory history = read_run_history(run_);
  EXPECT_EQ(history.trained_s, 90);
  EXPECT_THAT(report::page({history}, kUsualMetrics), HasSubstr("<td>1 min 30 s</td>"));
}

TEST_F(Report, OfARunThatHasWrittenNothing) {
  const std::string page = report::page({read_run_history(run_)}, kUsualMetrics);
  EXPECT_THAT(page, HasSubstr("No metric has been written yet."));
  EXPECT_THAT(page, HasSubstr("Nothing was changed or called."));
}

}  // namespace
}  // namespace footplate::report
