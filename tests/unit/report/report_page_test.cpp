// The page as a whole, of runs as their files have them.
#include <gmock/gmock.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <regex>

#include "console/report/page.h"

namespace footplate::report {
namespace {

using testing::HasSubstr;
using testing::Not;

/// What is between tags, one text a line, without what is drawn and the style sheet.
std::vector<std::string> texts_of(const std::string& page) {
  std::vector<std::string> texts;
  const std::string body = page.substr(page.find("<body>"));
  for (std::size_t at = body.find('>'); at != std::string::npos; at = body.find('>', at + 1)) {
    const auto next = body.find('<', at);
    if (next != std::string::npos && next > at + 1) texts.push_back(body.substr(at + 1, next - at - 1));
  }
  return texts;
}

/// The names of tags that aren't closed in order; empty where all are. By hand: std::regex takes stack for
/// each character of a tag, more than there is under AddressSanitizer.
std::string unbalanced(const std::string& page) {
  const auto is_letter = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0; };
  std::vector<std::string> open;
  for (std::size_t at = page.find('<'); at != std::string::npos; at = page.find('<', at + 1)) {
    const std::size_t end = page.find('>', at);
    if (end == std::string::npos) break;
    const bool closes = page[at + 1] == '/';
    const auto begin = page.begin() + static_cast<std::ptrdiff_t>(at + (closes ? 2 : 1));
    const std::string name(begin, std::find_if_not(begin, page.end(), is_letter));
    if (name.empty() || page[end - 1] == '/' || name == "meta" || name == "link" || name == "input") continue;
    if (!closes) {
      open.push_back(name);
    } else if (open.empty() || open.back() != name) {
      return "</" + name + ">";
    } else {
      open.pop_back();
    }
  }
  return open.empty() ? "" : open.back();
}

class ReportPage : public testing::Test {
 protected:
  ReportPage()
      : folder_(std::filesystem::temp_directory_path() / ("fp-report-page-" + std::to_string(::getpid()))) {
    for (const char* name : {"ones", "twos"}) std::filesystem::create_directories(folder_ / name);
    add_setting("log.every", Type::integer, std::int64_t{10}).unit = "steps";
    add_setting("optim.lr", Type::number, 0.0).knobs = {"sched.base_lr"};
    add_setting("sched.base_lr", Type::number, 1e-3);
    add_setting("sched.kind", Type::choice, std::string("constant"));
    add_setting("train.seed", Type::integer, std::int64_t{1});
  }
  ~ReportPage() override { std::filesystem::remove_all(folder_); }

  SettingSpec& add_setting(const char* name, Type type, Value usual) {
    SettingSpec spec;
    spec.name = name;
    spec.type = type;
    spec.default_value = std::move(usual);
    return schema_.settings.emplace_back(std::move(spec));
  }

  std::ofstream file(const char* name, const char* run = "ones") const {
    return std::ofstream(folder_ / run / name);
  }
  RunHistory history(const char* name = "ones") const {
    RunRecord run;
    run.directory = folder_ / name;
    run.run.name = name;
    run.run.state = RunState::running;
    run.run.step = 300;
    return read_run_history(run);
  }
  std::string page_of(const std::vector<RunHistory>& runs) const {
    const std::string html = page(runs, kUsualMetrics, schema_);
    EXPECT_EQ(unbalanced(html), "");
    for (const char* never : {"<script", "http:", "https:", "src=", "@import", ">nan<", ">inf<"})
      EXPECT_THAT(html, Not(HasSubstr(never)));
    return html;
  }

  static Json config(double base_lr, const char* kind, int log_every) {
    return {{"sched.base_lr", {{"value", base_lr}, {"source", "configs/kjv.lua:12"}}},
            {"sched.kind", {{"value", kind}, {"source", "command line"}}},
            {"optim.lr", {{"value", 0.25}, {"source", "default"}}},
            {"train.seed", {{"value", 1}, {"source", "configs/kjv.lua:3"}}},
            {"log.every", {{"value", log_every}, {"source", "default"}}}};
  }
  static std::string line(const std::string& branch, int start, int step, double loss) {
    return Json{{"branch", branch},     {"start", start},     {"step", step},
                {"time", 100.0 + step}, {"train/loss", loss}, {"train/lr", 0.00123456}}
               .dump() +
           "\n";
  }
  static std::string evaluation(const std::string& branch, int start, int step, double loss, double best) {
    return Json{
               {"branch", branch}, {"start", start}, {"step", step}, {"eval/loss", loss}, {"eval/best", best}}
               .dump() +
           "\n";
  }
  static std::string start_line(int start, int step, const std::string& branch, const std::string& resumed,
                                const Json& given) {
    return Json{{"start", start},
                {"step", step},
                {"time", "2026-11-24T0" + std::to_string(start) + ":00:00Z"},
                {"resumed", resumed.empty() ? Json() : Json(resumed)},
                {"loaded", start > 1},
                {"branch", branch},
                {"journal", start > 1 ? 1 : 0},
                {"given", given},
                {"world_size", 2}}
               .dump() +
           "\n";
  }
  /// An order that moved a setting while start `start` trained.
  static std::string order(int id, int start, int step, const char* name, double before, double after) {
    return Json{{"topic", "order"},
                {"time", "2026-11-24T0" + std::to_string(start) + ":10:00Z"},
                {"data",
                 {{"state", "applied"},
                  {"id", id},
                  {"order", {{"user", "ann"}}},
                  {"applied",
                   {{"id", id},
                    {"step", step},
                    {"moved", {{{"name", name}, {"before", before}, {"after", after}}}}}}}}}
               .dump() +
           "\n";
  }

  /// Main with base_lr 0.003 -> 0.004 at 50, and 0.5 at 120; from 100 0.01, which diverges, and 0.002.
  void write_sweep() const {
    file("config-1.json") << config(0.003, "cosine", 10).dump();
    file("starts.jsonl") << start_line(1, 0, "main", "", {})
                         << start_line(2, 100, "hot", "/runs/ones/checkpoints/main/step-00000100",
                                       {{"sched.base_lr", 0.01234567}})
                         << start_line(3, 100, "cool", "/runs/ones/checkpoints/main/step-00000100",
                                       {{"sched.base_lr", 0.002}});
    auto metrics = file("metrics.jsonl");
    for (int step = 1; step <= 150; ++step) metrics << line("main", 1, step, 3.0 - step * 0.01);
    metrics << evaluation("main", 1, 150, 1.6, 1.6);
    for (int step = 101; step <= 200; ++step) metrics << line("hot", 2, step, step > 150 ? 77.123456 : 1.9);
    for (int step = 101; step <= 300; ++step)
      metrics << line("cool", 3, step, 2.0 - step * 0.002 + step % 2 * 0.1);
    metrics << evaluation("cool", 3, 200, 1.45678, 1.45678) << evaluation("cool", 3, 300, 1.2, 1.45678);
    file("events.jsonl") << order(1, 1, 50, "sched.base_lr", 0.003, 0.004)
                         << order(2, 1, 120, "sched.base_lr", 0.004, 0.5)
                         << order(3, 2, 160, "sched.base_lr", 0.01234567, 0.02)
                         << order(4, 3, 250, "log.every", 10, 5);
  }

  std::filesystem::path folder_;
  Schema schema_;
};

/// It diverged, and the run went on from main's newest checkpoint, which is of a later step.
TEST_F(ReportPage, ABranchThatWasLeftForALaterCheckpointDecidesNoAxis) {
  file("config-1.json") << config(0.003, "cosine", 10).dump();
  file("starts.jsonl") << start_line(1, 0, "main", "", {})
                       << start_line(2, 50, "hot", "/runs/ones/checkpoints/main/step-00000050", {})
                       << start_line(3, 100, "cool", "/runs/ones/checkpoints/main/step-00000100", {});
  auto metrics = file("metrics.jsonl");
  for (int step = 1; step <= 100; ++step) metrics << line("main", 1, step, 3.0 - step * 0.01);
  for (int step = 51; step <= 80; ++step) metrics << line("hot", 2, step, 77.0);
  for (int step = 101; step <= 120; ++step) metrics << line("cool", 3, step, 1.5);
  metrics.close();
  const RunHistory run = history();
  ASSERT_EQ(run.stretches.size(), 3U);
  EXPECT_GT(run.stretches[0].left_at, 100) << "all of it was kept";
  EXPECT_EQ(run.stretches[1].left_at, 51) << "none of it was";
  EXPECT_EQ(run.stretches[2].left_at, kNever);
}

TEST_F(ReportPage, ASweepIsATableOfBranches) {
  write_sweep();
  const RunHistory run = history();
  ASSERT_EQ(run.branches.size(), 3U);
  EXPECT_EQ(run.branches[1].parent, "main");
  EXPECT_EQ(run.branches[0].left_at, 101);
  EXPECT_EQ(run.branches[1].left_at, 101);
  EXPECT_EQ(run.branches[2].left_at, kNever);
  EXPECT_NEAR(run.branches[1].train_loss, 77.123456, 1e-9);
  const std::string html = page_of({run});
  for (const char* part :
       {"<h2>Branches</h2>", "step 50: sched.base_lr 0.003 → 0.004; step 120: sched.base_lr 0.004 → 0.5<",
        ">sched.base_lr 0.004 → 0.01235; step 160: sched.base_lr 0.01235 → 0.02<",
        ">sched.base_lr 0.004 → 0.002; step 250: log.every 10 → 5<", ">main @100<", ">100 to 200<", ">77.12<",
        ">1.457<", ">hot, cool</text>", "up to 77.12, beyond the axis"})
    EXPECT_THAT(html, HasSubstr(part));
  // Each branch has its name and color in the charts.
  for (const char* key :
       {"<span class=\"key c0\">main ", "<span class=\"key c1\">hot ", "<span class=\"key c2\">cool "})
    EXPECT_THAT(html, HasSubstr(key));
  // The last one was on everything that is held out: 1.2 is below the best one.
  EXPECT_THAT(html, HasSubstr("cool · on other batches <b>1.2</b>"));
  EXPECT_THAT(html, HasSubstr("cool <b>1.457</b>"));
}

TEST_F(ReportPage, WhatAChangeWeighs) {
  const auto call = [](int id, const char* action) {
    return Json{{"topic", "order"},
                {"time", "2026-11-24T01:10:00Z"},
                {"data",
                 {{"state", "applied"},
                  {"id", id},
                  {"order",
                   {{"user", "ann"}, {"calls", {{{"action", action}, {"arguments", Json::object()}}}}}},
                  {"applied", {{"id", id}, {"step", id}, {"moved", Json::array()}}}}}}
               .dump() +
           "\n";
  };
  file("events.jsonl") << call(1, "eval.now") << call(2, "ckpt.save") << call(3, "run.pause")
                       << order(4, 1, 4, "log.every", 10, 5) << order(5, 1, 5, "train.clip_norm", 1, 2)
                       << order(6, 1, 6, "sched.base_lr", 1, 2) << order(7, 1, 7, "optim.lr_scale", 1, 2);
  std::vector<MomentKind> kinds;
  for (const Moment& moment : history().changes) kinds.push_back(moment.kind);
  EXPECT_THAT(
      kinds, testing::ElementsAre(MomentKind::quiet, MomentKind::quiet, MomentKind::change, MomentKind::quiet,
                                  MomentKind::change, MomentKind::learning_rate, MomentKind::learning_rate));
}

TEST_F(ReportPage, ABranchInheritsTheBestEvaluationOfItsCheckpoint) {
  write_sweep();
  file("metrics.jsonl")
      << evaluation("main", 1, 50, 1.75, 1.75) << evaluation("main", 1, 100, 1.8125, 1.75)
      << evaluation("main", 1, 150, 1.25, 1.25) << line("hot", 2, 150, 2) << line("cool", 3, 150, 2)
      << Json{{"branch", "cool"}, {"start", 3}, {"step", 151}, {"eval/full_loss", 1.125}}.dump() << "\n";
  const RunHistory run = history();
  ASSERT_EQ(run.branches.size(), 3U);
  EXPECT_EQ(run.branches[0].best_loss, 1.25);
  EXPECT_EQ(run.branches[2].best_loss, 1.75) << "what main found after step 100 was left";
  const std::string html = page_of({run});
  EXPECT_THAT(html.substr(0, html.find("<h2>Branches")), HasSubstr("<td class=\"n\">1.750</td>"));
  EXPECT_THAT(html, HasSubstr("cool · all that is held out <b>1.125</b>"));
}

TEST_F(ReportPage, NumbersHaveFourDigitsAtMost) {
  write_sweep();
  static const std::regex decimal(R"([0-9]+\.[0-9]+(e-?[0-9]+)?)");
  for (const std::string& text : texts_of(page_of({history()})))
    for (std::sregex_iterator it(text.begin(), text.end(), decimal), end; it != end; ++it) {
      std::string digits = it->str();
      digits = digits.substr(0, digits.find('e'));
      std::erase(digits, '.');
      digits.erase(0, digits.find_first_not_of('0'));
      EXPECT_LE(digits.size(), 4U) << text;
    }
}

TEST_F(ReportPage, TheConfigurationIsWhatDiffersFromTheDefaults) {
  write_sweep();
  const std::string html = page_of({history()});
  const std::string section = html.substr(html.find("<h2>Configuration</h2>"));
  EXPECT_THAT(section,
              HasSubstr("<td>sched.base_lr</td><td class=\"long\">0.003 → 0.002</td>"
                        "<td class=\"quiet\">0.001</td><td class=\"quiet\">configs/kjv.lua:12</td>"));
  EXPECT_THAT(section, HasSubstr("<td>sched.kind</td><td class=\"long\">cosine</td>"));
  EXPECT_THAT(section, HasSubstr("<td>log.every</td><td class=\"long\">10 steps → 5 steps</td>"));
  EXPECT_THAT(section, Not(HasSubstr("<td>train.seed</td>"))) << "the config has the default's value";
  EXPECT_THAT(section, Not(HasSubstr("<td>optim.lr</td>"))) << "it is computed";
}

TEST_F(ReportPage, OfSeveralRunsTheDifferencesComeFirst) {
  write_sweep();
  file("config-1.json", "twos") << config(0.003, "linear", 10).dump();
  file("starts.jsonl", "twos") << start_line(1, 0, "main", "", {});
  file("metrics.jsonl", "twos") << line("main", 1, 10, 2.5) << line("main", 1, 20, 2.25);
  const std::string html = page_of({history(), history("twos")});
  const auto different = html.find("What differs between the runs."), same = html.find("What they share");
  ASSERT_NE(different, std::string::npos);
  const std::string first = html.substr(different, std::min(same, html.find("<h2>Changes")) - different);
  EXPECT_THAT(first,
              HasSubstr("<td>sched.kind</td><td class=\"c2\">cosine</td><td class=\"c3\">linear</td>"));
  EXPECT_THAT(
      first,
      HasSubstr("<td>sched.base_lr</td><td class=\"c2\">0.003 → 0.002</td><td class=\"c3\">0.003</td>"));
  EXPECT_THAT(html, HasSubstr("ones · hot"));
  EXPECT_THAT(html, HasSubstr("<span class=\"key c3\">twos "));
}

TEST_F(ReportPage, OfOneStepWithoutEvaluations) {
  file("metrics.jsonl") << line("main", 1, 1, 5.5);
  const std::string html = page_of({history()});
  EXPECT_THAT(html, HasSubstr("<circle"));
  EXPECT_THAT(html, Not(HasSubstr("eval/loss")));
  EXPECT_THAT(html, Not(HasSubstr("<h2>Branches")));
}

TEST_F(ReportPage, OfLossesThatAreNoNumbers) {
  auto metrics = file("metrics.jsonl");
  for (int step = 1; step <= 40; ++step) {
    Json one = Json::parse(line("main", 1, step, 2));
    if (step > 30) one["train/loss"] = "@nan";
    metrics << one.dump() << "\n";
  }
  metrics.close();
  const std::string html = page_of({history()});
  EXPECT_THAT(html, HasSubstr("10 values are NaN or infinite"));
  EXPECT_THAT(html, HasSubstr("class=\"nan\""));
}

TEST_F(ReportPage, AnEvaluationBesideTrainingIsNoStepBack) {
  file("metrics.jsonl") << line("main", 1, 100, 2) << line("main", 1, 120, 2)
                        << evaluation("main", 1, 100, 2.5, 2.5) << line("main", 1, 140, 2);
  const RunHistory run = history();
  ASSERT_EQ(run.stretches.size(), 1U);
  EXPECT_EQ(run.stretches[0].left_at, kNever);
  EXPECT_EQ(run.stretches[0].last_step, 140);
}

TEST_F(ReportPage, ARestartIsRepeatedInItsBranch) {
  file("starts.jsonl") << start_line(1, 0, "main", "", {});
  file("metrics.jsonl") << line("main", 1, 100, 2) << line("main", 1, 120, 3) << line("main", 2, 110, 1.9)
                        << line("main", 2, 120, 1.8);
  const RunHistory run = history();
  ASSERT_EQ(run.stretches.size(), 2U);
  EXPECT_EQ(run.stretches[0].repeated_at, 110);
  EXPECT_THAT(page_of({run}), HasSubstr("class=\"c0 pale\""));
}

TEST_F(ReportPage, OfAHundredThousandLinesIsSmall) {
  constexpr int kLines = 100'000;
  auto metrics = file("metrics.jsonl");
  for (int step = 1; step <= kLines; ++step) {
    Json one = {{"branch", "main"}, {"start", 1}, {"step", step}, {"time", 100.0 + step}};
    for (const std::string& name : kUsualMetrics) one[name] = 2 + (step * 7919 % 1000) / 1000.0;
    metrics << one.dump() << "\n";
  }
  metrics.close();
  auto events = file("events.jsonl");
  for (int id = 1; id <= 2000; ++id)
    events << order(id, 1, id * 50, "sched.base_lr", 0.001 * id, 0.001 * (id + 1));
  events.close();
  const std::string html = page_of({history()});
  EXPECT_LT(html.size(), 2'000'000U);
  EXPECT_THAT(html, HasSubstr("and 1500 more, in events.jsonl"));
}

TEST_F(ReportPage, DataSetsHaveTheirLastFigures) {
  file("metrics.jsonl") << line("main", 1, 10, 2.0)
                        << Json{{"branch", "main"},
                                {"start", 1},
                                {"step", 20},
                                {"data/big/loss", 0.25},
                                {"data/big/samples", 130},
                                {"data/big/epoch", 3.25}}
                                   .dump() +
                               "\n"
                        << Json{{"branch", "main"},
                                {"start", 1},
                                {"step", 30},
                                {"data/big/loss", 0.125},
                                {"data/small/loss", 4.0}}
                                   .dump() +
                               "\n"
                        << Json{{"branch", "main"},
                                {"start", 1},
                                {"step", 30},
                                {"eval/big/loss", 0.75},
                                {"eval/big/full_loss", 0.5}}
                                   .dump() +
                               "\n";
  const auto texts = texts_of(page_of({history()}));
  const auto at = [&](const char* text) { return std::find(texts.begin(), texts.end(), text); };
  ASSERT_NE(at("Data sets"), texts.end());
  const auto row = at("big");
  ASSERT_NE(row, texts.end());
  EXPECT_EQ(std::vector<std::string>(row, row + 5),
            (std::vector<std::string>{"big", "130.0", "3.250", "0.1250", "0.5000"}));
  EXPECT_NE(at("small"), texts.end());
}

TEST_F(ReportPage, OneDataSetHasNoTable) {
  file("metrics.jsonl") << line("main", 1, 10, 2.0) << evaluation("main", 1, 10, 1.5, 1.5);
  EXPECT_THAT(page_of({history()}), Not(HasSubstr("Data sets")));
}

}  // namespace
}  // namespace footplate::report
