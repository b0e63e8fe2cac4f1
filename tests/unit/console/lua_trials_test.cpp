// try{}: what is measured, what decides, and what is put back.

#include <gmock/gmock.h>

#include <cmath>

#include "console/lua/trials/samples.h"
#include "fake_console.h"

namespace footplate::test {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

TEST(Samples, AMeanHasTheErrorOfItsValues) {
  lua::Samples samples;
  for (const double value : {1.0, 2.0, 3.0, 4.0}) samples.add(7, value);
  EXPECT_DOUBLE_EQ(samples.mean().value, 2.5);
  EXPECT_NEAR(samples.mean().error, std::sqrt(5.0 / 3 / 4), 1e-12);
  EXPECT_DOUBLE_EQ(samples.line_at(100).value, 2.5) << "all at one place";
}

TEST(Samples, ALineGoesThroughWhatLiesOnOne) {
  lua::Samples samples;
  for (const double place : {1.0, 2.0, 4.0}) samples.add(place, 10 - 2 * place);
  EXPECT_NEAR(samples.line_at(8).value, -6, 1e-12);
  EXPECT_NEAR(samples.line_at(8).error, 0, 1e-12);
}

/// By hand, for (0,0) (1,1) (2,1) (3,2): slope 0.6, intercept 0.1, residuals 0.1 0.3 0.3 0.1 squared sum 0.2.
TEST(Samples, TheErrorOfALineGrowsWithTheDistance) {
  lua::Samples samples;
  const double values[] = {0, 1, 1, 2};
  for (int place = 0; place < 4; ++place) samples.add(place, values[place]);
  EXPECT_NEAR(samples.line_at(6).value, 3.7, 1e-12);
  EXPECT_NEAR(samples.line_at(6).error, std::sqrt(0.1 * (0.25 + 4.5 * 4.5 / 5)), 1e-12);
  EXPECT_LT(samples.line_at(1.5).error, samples.line_at(6).error);
}

class Trials : public LuaChunks {
 protected:
  Trials() {
    console.line = [this](double step) {
      const double scale = std::get<double>(console.session().settings().value("optim.lr_scale"));
      // Straight over the logarithm of the step, and further down by what lr_scale was changed to.
      const double loss = 5 - 0.5 * std::log(step) - (scale - 1) * gain;
      return Json{{"step", step},
                  {"train/loss", number_to_json(scale > 50 ? std::nan("") : loss)},
                  {"perf/step_ms", 100 + 20 * scale + std::fmod(step, 20) / 100},
                  {"perf/tokens_per_s", 1000 - 100 * scale}};
    };
  }
  Json scale() { return to_json(console.session().settings().value("optim.lr_scale")); }

  double gain = 0.1;
};

TEST_F(Trials, WhatGetsBetterThanItWouldHaveIsKept) {
  const std::string text =
      text_of("log.every = 10 return try{ set = { optim = { lr_scale = 2 } }, steps = 50 }");
  EXPECT_THAT(text, AllOf(HasSubstr("trial of optim.lr_scale = 2: train/loss "), HasSubstr(" in 50 steps, "),
                          HasSubstr("kept"), Not(HasSubstr("noise"))));
  EXPECT_EQ(scale(), 2.0);
  ASSERT_EQ(console.orders.size(), 3U) << "log.every; the change; the note";
  EXPECT_EQ(console.orders[1].changes.at(0).expect, Value(1.0)) << "nobody else has changed it meanwhile";
  EXPECT_EQ(console.orders[2].calls.at(0).action, "run.note");
  EXPECT_EQ(console.orders[2].calls.at(0).arguments["text"], text);
}

TEST_F(Trials, ALossThatOnlyFallsAsItDidIsNoReasonToKeepAnything) {
  gain = -0.01;  // the loss still falls, less than it would have
  EXPECT_THAT(text_of("log.every = 10 return try{ set = { optim = { lr_scale = 2 } }, steps = 50 }"),
              HasSubstr("put back"));
  EXPECT_EQ(scale(), 1.0);
  EXPECT_EQ(console.orders.back().calls.at(0).action, "run.note");
  EXPECT_EQ(console.orders.at(2).changes.at(0).value, Value(1.0));
}

TEST_F(Trials, TimesAreComparedAsTheyAre) {
  EXPECT_THAT(text_of("log.every = 10 return try{ set = { optim = { lr_scale = 0.5 } }, metric = "
                      "'perf/step_ms', better_by = 0.02 }"),
              AllOf(HasSubstr("perf/step_ms 120"), HasSubstr("-8.33 %"), HasSubstr("kept")));
  EXPECT_THAT(
      text_of("return try{ set = { optim = { lr_scale = 0.4 } }, metric = 'perf/step_ms', better_by = 0.5 }"),
      HasSubstr("put back"));
  EXPECT_THAT(text_of("return try{ set = { optim = { lr_scale = 0.4 } }, metric = 'perf/tokens_per_s' }"),
              HasSubstr("kept"))
      << "more is better";
}

TEST_F(Trials, KeepIfSeesBothSides) {
  EXPECT_EQ(text_of("log.every = 10 return try{ set = { optim = { lr_scale = 2 } }, steps = 30, keep_if = "
                    "function(before, after) "
                    "return after['perf/step_ms'] > before['perf/step_ms'] and after.first_step > "
                    "before.last_step end }.kept"),
            "true");
  EXPECT_THAT(
      error_of(
          "try{ set = { optim = { lr_scale = 1 } }, steps = 30, keep_if = function() error('no idea') end }"),
      AllOf(HasSubstr("keep_if failed"), HasSubstr("no idea"), HasSubstr("what was before is back")));
  EXPECT_EQ(scale(), 2.0);
}

/// Each fifth line has details.
TEST_F(Trials, AMetricOfAnotherKindIsFollowedAsOftenAsItIsLogged) {
  console.line = [line = console.line](double step) {
    Json now = line(step);
    if (std::fmod(step, 50) < 10) now["train/grad_norm"] = step < 1400 ? 2 : 12;
    return now;
  };
  const std::string text = text_of(
      "log.every = 10 return try{ set = { optim = { lr_scale = 2 } }, metric = 'train/grad_norm', abandon_if "
      "= function(m) "
      "return m['train/grad_norm'] > 10 and m['perf/step_ms'] > 100 end }");
  EXPECT_THAT(text, AllOf(HasSubstr("abandoned at step 1452"), HasSubstr("put back")))
      << "ten lines of details take 500 steps";
  EXPECT_THAT(error_of("try{ set = { optim = { lr_scale = 2 } }, metric = 'train/grad_norm', steps = 100 }"),
              AllOf(HasSubstr("with log.detail_every = 50"), HasSubstr("fewer than 3 lines")));
  text_of("log.perf_every = 0");
  EXPECT_THAT(error_of("try{ set = { optim = { lr_scale = 2 } }, metric = 'perf/mfu' }"),
              HasSubstr("log.perf_every is 0; log.perf_every = 10"));
}

TEST_F(Trials, WhatGoesWrongIsPutBackAtOnce) {
  text_of("log.every = 10");
  EXPECT_THAT(
      text_of("return try{ set = { optim = { lr_scale = 60 } }, steps = 5000 }"),
      AllOf(HasSubstr("abandoned at step"), HasSubstr("the loss isn't finite"), HasSubstr("put back")));
  EXPECT_EQ(scale(), 1.0);
  EXPECT_THAT(text_of("return try{ set = { optim = { lr_scale = 2 } }, steps = 5000, save = true, abandon_if "
                      "= function(m) return "
                      "m['perf/step_ms'] > 130 end }"),
              AllOf(HasSubstr("abandon_if said so"), HasSubstr("ckpt.load(\"before-try\")")));
  EXPECT_EQ(scale(), 1.0);
}

TEST_F(Trials, WhatSomebodyElseHasChangedMeanwhileIsNotPutBack) {
  text_of("log.every = 10");
  error_of("try{ set = { optim = { lr_scale = 2 } }, steps = 30, keep_if = function() ann() end }");
  EXPECT_EQ(console.orders.back().changes.at(0).expect, Value(2.0));
  console.line = [this, line = console.line](double step) {
    if (scale() == 2.0) console.session().settings_changed({{{"optim.lr_scale", {3.0, "order 9 (bob)"}}}});
    return line(step);
  };
  error_of("try{ set = { optim = { lr_scale = 2 } }, steps = 30, keep_if = function() ann() end }");
  EXPECT_EQ(console.orders.back().changes.at(0).expect, Value(2.0)) << "so that it is refused";
}

TEST_F(Trials, AnInterruptWhileItIsPutBackDoesNotKeepTheChange) {
  text_of("log.every = 10");
  console.line = [this, line = console.line, lines = 0](double step) mutable {
    // Lines come in pairs: after the second one the next wait is that of the order which puts it back.
    if (scale() == 2.0) console.interrupt_waits = ++lines == 4;
    return line(step);
  };
  EXPECT_THAT(
      error_of("try{ set = { optim = { lr_scale = 2 } }, steps = 30, keep_if = function() print('decided') "
               "return false end }"),
      AllOf(HasSubstr("interrupted"), HasSubstr("what was before is back")));
  EXPECT_THAT(console.out + console.talk, HasSubstr("decided")) << "so it came later than that";
  EXPECT_EQ(scale(), 1.0);
}

TEST_F(Trials, EvaluationsAreAsked) {
  console.call_result = {{"loss", 1.5}};
  EXPECT_THAT(text_of("log.every = 10 return try{ set = { optim = { lr_scale = 2 } }, metric = 'eval/loss', "
                      "steps = 20 }"),
              AllOf(HasSubstr("eval/loss 1.5 -> 1.5"), HasSubstr("kept")));
  EXPECT_THAT(error_of("try{ set = { optim = { lr_scale = 2 } }, metric = 'eval/los', steps = 20 }"),
              HasSubstr("gives no eval/los"));
}

TEST_F(Trials, NothingIsChangedByWhatCannotBeTried) {
  text_of("log.every = 10");
  const std::size_t orders = console.orders.size();
  const std::pair<const char*, const char*> wrong[] = {
      {"try{}", "needs what to set"},
      {"try{ set = { optim = { lr_scal = 2 } } }", "did you mean optim.lr_scale?"},
      {"try{ set = { optim = { lr_scale = 'much' } } }", "lr_scale"},
      {"try{ set = { nccl = { buffer_bytes = 4096 } } }", "applies"},
      {"try{ set = { optim = { lr_scale = 2 } }, steps = 20 }", "fewer than 3 lines"},
      {"try{ set = { optim = { lr_scale = 2 } }, stesp = 20 }", "did you mean steps?"},
      {"try{ set = { optim = { lr_scale = 2 } }, metric = 'loss' }", "metric is the name of one"},
      {"try{ set = { optim = { lr_scale = 2 } }, metric = 'train/los' }", "isn't logged"},
      {"try{ set = { optim = { lr_scale = 2 } }, keep_if = 5 }", "keep_if is a function"},
      {"try{ set = { optim = { lr_scale = 2 } }, better_by = 2 }", "0 to 1"},
      {"try{ set = { optim = { lr_scale = 2 } }, better_by = 0.1, keep_if = print }", "not both"}};
  for (const auto& [code, said] : wrong) EXPECT_THAT(error_of(code), HasSubstr(said)) << code;
  EXPECT_EQ(console.orders.size(), orders);
  EXPECT_THAT(error_of("log.every = 0 eval.now():wait() try{ set = { optim = { lr_scale = 2 } } }"),
              HasSubstr("log.every is 0"));
}

}  // namespace
}  // namespace footplate::test
