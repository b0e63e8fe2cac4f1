#include "runtime/watch/status_tracker.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/orders/as_json.h"

namespace footplate {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::HasSubstr;
using Clock = std::chrono::steady_clock;

message::Beat beat_of(Json json) {
  json["t"] = "beat";
  return std::get<message::Beat>(testing::to_rank_zero(json));
}

TEST(RunStatusTest, NamesWhoIsMissingFromACollective) {
  const Clock::time_point start{seconds(1000)};
  StatusTracker status(3, {}, start);
  const auto beat = [&](int rank, std::uint64_t sequence, bool running, double age_s) {
    status.heard(rank, start);
    status.beat(
        rank,
        beat_of({{"step", 812},
                 {"phase", "data"},
                 {"phase_s", 43.0},
                 {"state", "running"},
                 {"collective",
                  {{"sequence", sequence}, {"kind", "all_reduce"}, {"running", running}, {"age_s", age_s}}}}),
        start);
  };
  beat(0, 4471, true, 42);
  beat(1, 4470, false, 42);
  beat(2, 4471, true, 42);
  const RunStatus now = status.run_status(1000, start);
  EXPECT_EQ(now.notes.at(0),
            "collective #4471 waits for rank 1: step 812, data after all_reduce #4470, 43 s");
  EXPECT_EQ(now.ranks.size(), 3U);
}

TEST(RunStatusTest, MarksWhereASilentRankWas) {
  const Clock::time_point start{seconds(1000)};
  StatusTracker status(2, {}, start);
  const message::Beat beat =
      beat_of({{"step", 812}, {"phase", "data"}, {"phase_s", 40.0}, {"state", "running"}});
  status.beat(1, beat, start);
  EXPECT_EQ(status.whom({1}, start + milliseconds(500)), "rank 1: step 812, data, 40 s");
  EXPECT_EQ(status.whom({1}, start + milliseconds(3200)), "rank 1: step 812, data, last heard 3.2 s ago");
}

TEST(RunStatusTest, TheBestEvaluationIsTheTrainersChoice) {
  const auto now = Clock::now();
  StatusTracker status(1, {}, now);
  status.metrics(LoggedMetrics{{{"eval/loss", 3.0}}});
  EXPECT_EQ(status.run_status(10, now).best_eval_loss, std::nullopt);
  status.beat(0, beat_of({{"best_eval_loss", 2.0}}),
              now);  // of the checkpoint, before any evaluation of this start
  EXPECT_EQ(status.run_status(10, now).best_eval_loss, 2.0);
  status.metrics(LoggedMetrics{{{"eval/loss", 1.0}, {"eval/best", 2.0}}});  // partial, or on other batches
  EXPECT_EQ(status.run_status(10, now).eval_loss, 1.0);
  EXPECT_EQ(status.run_status(10, now).best_eval_loss, 2.0);
}

TEST(RunStatusTest, TellsOfAnEvaluationBesideTraining) {
  const auto now = Clock::now();
  StatusTracker status(1, {}, now);
  status.beat(0, beat_of({{"step", 9}}), now);
  EXPECT_EQ(status.run_status(10, now).evaluating_step, std::nullopt);
  status.beat(0, beat_of({{"step", 9}, {"evaluating_step", 5}}), now);
  EXPECT_EQ(status.run_status(10, now).evaluating_step, 5);
}

TEST(RunStatusTest, BlamesNobodyAfterRankZeroItselfWasStopped) {
  Clock::time_point now{seconds(1000)};
  const ControlTimes times;
  StatusTracker status(2, times, now);
  const auto own = status.tick(now += seconds(10));
  ASSERT_EQ(own.size(), 1U) << "its own silence, which nobody else could tell of";
  EXPECT_EQ(own[0].rank, 0);
  EXPECT_EQ(own[0].state, RankChangeKind::back);
  EXPECT_THAT(own[0].text, HasSubstr("rank 0 is back: it was silent for 10 s"));
  status.heard(0, now);
  EXPECT_TRUE(status.tick(now += times.heartbeat / 2).empty());
  status.heard(0, now += times.heartbeat / 2);
  EXPECT_EQ(status.tick(now).size(), 1U) << "rank 1 had its time";
}

TEST(RunStatusTest, CountsSilenceFromWhenAHeartbeatWasSentOnItsOwnHost) {
  const Clock::time_point start{seconds(1000)};
  const ControlTimes times;
  StatusTracker status(3, times, start);
  const auto beat = [&](int rank, const char* host, Clock::time_point sent, Clock::time_point read) {
    status.beat(
        rank, beat_of({{"host", host}, {"at_ns", std::chrono::nanoseconds(sent.time_since_epoch()).count()}}),
        read);
  };
  const auto read = start + milliseconds(400);
  beat(0, "a", read, read);
  beat(1, "a", start + milliseconds(50), read);
  beat(2, "b", start - seconds(500), read);  // another host's clock
  EXPECT_TRUE(status.tick(read).empty());
  EXPECT_EQ(status.next_tick(), start + milliseconds(50) + times.stalled);
  const auto changes = status.tick(status.next_tick() + milliseconds(1));
  ASSERT_EQ(changes.size(), 1U);
  EXPECT_EQ(changes[0].rank, 1);
}

}  // namespace
}  // namespace footplate
