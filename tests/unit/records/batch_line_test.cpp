#include "runtime/records/batch_line.h"

#include "fixture.h"

namespace footplate {
namespace {

using namespace std::chrono_literals;

const auto kTime = std::chrono::system_clock::from_time_t(1795201200);  // 2026-11-20T19:00:00Z
const std::string kStamp = "2026-11-20T19:00:00Z ";

std::string line(std::string_view topic, const Json& data, std::int64_t steps = 1300) {
  return batch_line(kTime, topic, data, steps).value_or("(none)");
}

TEST(BatchLine, Metrics) {
  const Json data = {{"step", 100},        {"time", 1.0},           {"train/loss", 2.3149},
                     {"train/lr", 1e-3},   {"perf/step_ms", 160.2}, {"perf/tokens_per_s", 25600.0},
                     {"train/epoch", 0.25}};
  EXPECT_EQ(
      line("metrics", data),
      kStamp + "step 100/1300 · loss 2.3149 · lr 0.001 · 25600 tokens/s · 160.2 ms/step · eta 3 min 12 s");
  EXPECT_EQ(line("metrics", data, 0),
            kStamp + "step 100 · loss 2.3149 · lr 0.001 · 25600 tokens/s · 160.2 ms/step");
  EXPECT_EQ(line("metrics",
                 {{"step", 100}, {"train/loss", 2.0}, {"perf/tokens_per_s", 4.5e5}, {"perf/mfu", 0.3941}}, 0),
            kStamp + "step 100 · loss 2.0000 · 450000 tokens/s · 39.41 % MFU");
  EXPECT_EQ(line("metrics", {{"step", 1300}, {"train/loss", "@nan"}}), kStamp + "step 1300/1300 · loss nan");
  EXPECT_EQ(line("metrics", {{"step", 100}, {"eval/loss", 2.0}}), "(none)");
}

TEST(BatchLine, Evaluation) {
  EXPECT_EQ(line("eval", {{"step", 200}, {"loss", 1.9312}, {"best", 1.9}, {"seconds", 4.21}, {"tokens", 5}}),
            kStamp + "eval at step 200 · loss 1.9312 · best 1.9000 · 4.21 s");
  EXPECT_EQ(line("eval", {{"step", 200}, {"loss", 1.9}, {"best", "@inf"}, {"seconds", 4.21}}),
            kStamp + "eval at step 200 · loss 1.9000 · 4.21 s")
      << "no best yet";
  EXPECT_EQ(line("eval", {{"step", 200}, {"failed", true}, {"reason", "rank 1: bad file"}}),
            kStamp + "eval at step 200 failed: rank 1: bad file");
  EXPECT_EQ(
      line("eval", {{"step", 200}, {"loss", 1.9}, {"partial", true}, {"batches", 3}, {"batches_wanted", 8}}),
      kStamp + "eval at step 200 · loss 1.9000 · partial, 3 of 8 batches");
}

TEST(BatchLine, JobsAndRules) {
  EXPECT_EQ(line("job", {{"job", "watch"}, {"text", "loss 2.5"}}), kStamp + "[watch] loss 2.5");
  EXPECT_EQ(line("rule", {{"rule", 3}, {"text", "rule 3, every(10, …), is off"}}),
            kStamp + "rule 3, every(10, …), is off");
}

TEST(BatchLine, Checkpoint) {
  EXPECT_EQ(line("ckpt", {{"step", 500},
                          {"path", "runs/x/checkpoints/main/step-00000500"},
                          {"seconds", 0.1234},
                          {"bytes", 10114728}}),
            kStamp + "checkpoint at step 500 · runs/x/checkpoints/main/step-00000500 · 10.1 MB · 0.1234 s");
  EXPECT_EQ(line("ckpt", {{"step", 500}, {"reason", "No space left on device"}}),
            kStamp + "checkpoint at step 500 failed: No space left on device");
}

TEST(BatchLine, Orders) {
  const Json applied = {{"id", 4},
                        {"state", "applied"},
                        {"order", {{"user", "ann"}}},
                        {"calls", Json::array()},
                        {"applied",
                         {{"id", 4},
                          {"step", 12041},
                          {"ranks", 8},
                          {"world_size", 8},
                          {"moved",
                           {{{"name", "log.every"}, {"before", 50}, {"after", 10}},
                            {{"name", "sched.kind"}, {"before", "cosine"}, {"after", "linear"}}}}}}};
  EXPECT_EQ(
      line("order", applied),
      kStamp + "ann: log.every 50 -> 10, sched.kind cosine -> linear, applied at step 12041 on 8/8 ranks");
  EXPECT_EQ(line("order", {{"id", 5},
                           {"state", "applied"},
                           {"order", {{"calls", {{{"action", "ckpt.save"}}}}}},
                           {"applied", {{"step", 3}, {"ranks", 2}, {"world_size", 2}}}}),
            kStamp + "ckpt.save(), applied at step 3 on 2/2 ranks");
  EXPECT_EQ(line("order", {{"id", 5},
                           {"state", "applied"},
                           {"order", {{"calls", {{{"action", "x"}}}}}},
                           {"applied", {{"step", 3}, {"ranks", 2}, {"world_size", 2}, {"renewed_s", 1.9}}}}),
            kStamp + "x(), new communicators at step 3 on 2/2 ranks, 1.9 s");
  EXPECT_EQ(line("order", {{"id", 6}, {"state", "refused"}, {"error", "rank 1: no memory"}}),
            kStamp + "order 6 refused: rank 1: no memory");
  EXPECT_EQ(line("order", {{"id", 6}, {"state", "withdrawn"}}), kStamp + "order 6 withdrawn");
  for (const char* state : {"accepted", "committed", "waiting"})
    EXPECT_EQ(line("order", {{"id", 6}, {"state", state}}), "(none)");
}

TEST(BatchLine, ValuesOfOrdersAreAsPeopleWriteThem) {
  const Json applied = {{"id", 4},
                        {"state", "applied"},
                        {"applied",
                         {{"step", 3},
                          {"ranks", 2},
                          {"world_size", 2},
                          {"moved",
                           {{{"name", "log.every"}, {"before", 500}, {"after", 500}},
                            {{"name", "optim.lr_scale"}, {"before", 1.0}, {"after", 0.9}},
                            {{"name", "eval.async"}, {"before", false}, {"after", true}},
                            {{"name", "optim.eps"}, {"before", 1e-8}, {"after", 1e-6}},
                            {{"name", "optim.betas"}, {"before", {0.9, 0.99}}, {"after", {1.0, 0.95}}}}}}}};
  EXPECT_EQ(line("order", applied),
            kStamp +
                "log.every stays 500, optim.lr_scale 1 -> 0.9, eval.async false -> true, optim.eps 1e-8 -> "
                "1e-6, optim.betas {0.9, 0.99} -> {1, 0.95}, applied at step 3 on 2/2 ranks");
}

TEST(BatchLine, TheRest) {
  EXPECT_EQ(line("call", {{"action", "eval.now"}, {"state", "failed"}, {"error", "rank 0: x"}}),
            kStamp + "eval.now failed: rank 0: x");
  EXPECT_EQ(line("call", {{"action", "eval.now"}, {"state", "done"}}), "(none)");
  EXPECT_EQ(line("run", {{"state", "ending"}, {"step", 7}}), kStamp + "ending at step 7");
  EXPECT_EQ(line("rank", {{"rank", 3}, {"state", "stalled"}, {"text", "rank 3: step 812, 42 s"}}),
            kStamp + "rank 3: step 812, 42 s");
  EXPECT_EQ(line("rank", {{"rank", 3}, {"state", "back"}}), kStamp + "rank 3 back");
  EXPECT_EQ(line("warn", {{"text", "disk full"}}), kStamp + "warning: disk full");
  EXPECT_EQ(
      line("end",
           {{"reason", "done"}, {"step", 1300}, {"code", 0}, {"eval_loss", 1.6234}, {"checkpoint", "c"}}),
      kStamp + "end: done · step 1300 · held-out loss 1.6234 · c · exit code 0");
  EXPECT_EQ(line("unheard-of", {{"x", 1}}), "(none)");
}

TEST(BatchLine, IsOnePlainLineWhateverTheTextHolds) {
  EXPECT_EQ(line("warn", {{"text", "a\nb\x1b[2Jc\x7f\td \xc2\x9b m \xc2\xb5s"}}),
            kStamp + "warning: a b?[2Jc? d ? m \xc2\xb5s");
}

TEST(BatchLine, FieldsOfOtherTypesNeverThrow) {
  const std::vector<Json> odd = {
      Json(),       Json(1),    Json("x"),    Json::array(),     Json::object(),
      Json(-1e300), Json(true), Json("@nan"), Json{{"name", 1}}, Json::array({1, "x", Json::object()})};
  const std::vector<const char*> fields = {
      "step",     "train/loss", "train/lr",  "perf/step_ms", "perf/tokens_per_s",
      "perf/mfu", "loss",       "best",      "seconds",      "bytes",
      "path",     "state",      "error",     "reason",       "text",
      "id",       "applied",    "calls",     "order",        "rank",
      "action",   "code",       "eval_loss", "checkpoint",   "partial"};
  for (const char* topic : {"metrics", "eval", "ckpt", "order", "call", "run", "rank", "warn", "end", ""})
    for (const auto& value : odd) {
      EXPECT_NO_THROW(batch_line(kTime, topic, value, 10));
      for (const char* field : fields)
        EXPECT_NO_THROW(batch_line(kTime, topic, {{field, value}, {"train/loss", 1}, {"loss", 1}}, 10));
      EXPECT_NO_THROW(batch_line(
          kTime, topic,
          {{"state", "applied"}, {"applied", {{"moved", value}, {"step", value}}}, {"calls", value}}, 10));
    }
}

}  // namespace
}  // namespace footplate
