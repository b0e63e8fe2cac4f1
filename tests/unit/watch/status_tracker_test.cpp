#include "runtime/watch/status_tracker.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <utility>
#include <vector>

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

/// What the tracker says of silence by looking at every rank each time.
class SilenceOfEach {
 public:
  SilenceOfEach(std::size_t ranks, ControlTimes times, Clock::time_point now)
      : times_(times), ranks_(ranks, {now, false, false}) {}
  void heard(std::size_t rank, Clock::time_point now) { ranks_[rank].heard = now; }
  void goodbye(std::size_t rank) { ranks_[rank].gone = true; }
  Clock::time_point next_tick() const {
    auto next = Clock::time_point::max();
    for (const auto& rank : ranks_)
      if (!rank.gone && !rank.stalled) next = std::min(next, rank.heard + times_.stalled);
    return next;
  }
  std::vector<std::pair<int, RankChangeKind>> tick(Clock::time_point now) {
    std::vector<std::pair<int, RankChangeKind>> changes;
    for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
      auto& one = ranks_[rank];
      const bool silent = !one.gone && now - one.heard > times_.stalled;
      if (silent == one.stalled) continue;
      one.stalled = silent;
      changes.emplace_back(rank, silent ? RankChangeKind::stalled : RankChangeKind::back);
    }
    return changes;
  }
  bool anyone_silent() const {
    return std::any_of(ranks_.begin(), ranks_.end(), [](const auto& rank) { return rank.stalled; });
  }

 private:
  struct One {
    Clock::time_point heard;
    bool stalled = false, gone = false;
  };
  ControlTimes times_;
  std::vector<One> ranks_;
};

TEST(RunStatusTest, FindsSilenceAsIfItLookedAtEveryRank) {
  std::mt19937 random(25);
  const auto below = [&](unsigned bound) { return static_cast<unsigned>(random() % bound); };
  const ControlTimes times;
  for (const int world_size : {1, 2, 3, 8, 13}) {
    Clock::time_point now{seconds(1000)};
    StatusTracker status(5, times, now);
    // The world of before doesn't count.
    status.tick(now += milliseconds(400));
    status.world_changed(std::vector<int>(static_cast<std::size_t>(world_size), -1), now);
    SilenceOfEach naive(static_cast<std::size_t>(world_size), times, now);
    std::size_t told = 0;
    for (int i = 0; i < 3000; ++i) {
      now += milliseconds(below(200));
      for (unsigned heard = below(4); heard > 0; --heard) {
        const auto rank = below(static_cast<unsigned>(world_size));
        status.heard(static_cast<int>(rank), now);
        naive.heard(rank, now);
      }
      if (i == 2000) {
        status.goodbye(world_size - 1);
        naive.goodbye(static_cast<std::size_t>(world_size) - 1);
      }
      std::vector<std::pair<int, RankChangeKind>> changes;
      for (const RankChange& change : status.tick(now))
        changes.emplace_back(change.rank.value(), change.state);
      ASSERT_EQ(changes, naive.tick(now)) << i;
      ASSERT_EQ(status.next_tick(), naive.next_tick()) << i;
      ASSERT_EQ(status.anyone_silent(), naive.anyone_silent()) << i;
      told += changes.size();
    }
    EXPECT_TRUE(world_size < 8 || told > 100) << told;
  }
}

TEST(RunStatusTest, WhoIsWaitedForInACollectiveIsStuckPastTheLimit) {
  const Clock::time_point now{seconds(1000)};
  StatusTracker status(3, {}, now);
  const auto beat = [&](int rank, std::uint64_t sequence, double age_s) {
    message::Beat beat;
    beat.collective = CollectiveStatus{sequence, "all_reduce", 1, true, age_s};
    status.beat(rank, beat, now);
  };
  beat(0, 7, 12);
  beat(1, 7, 11);
  beat(2, 6, 0.1);
  ASSERT_TRUE(status.stuck(seconds(10), now));
  EXPECT_EQ(status.stuck(seconds(10), now)->rank, 2);
  EXPECT_FALSE(status.stuck(seconds(13), now));
  status.world_changed({0, 2}, now);
  ASSERT_TRUE(status.stuck(seconds(10), now)) << "what is known of them stays";
  EXPECT_EQ(status.stuck(seconds(10), now)->rank, 1);
  beat(0, 7, 0.5);  // another one of this number: the world is new
  EXPECT_FALSE(status.stuck(seconds(10), now));
  EXPECT_TRUE(status.stuck(milliseconds(200), now)) << "a limit below what a status looks into";
  beat(0, 8, 11);
  EXPECT_TRUE(status.stuck(seconds(10), now));
}

/// In a large world heartbeats come seldom.
TEST(RunStatusTest, AHeartbeatFromBeforeTheCollectiveSaysNothing) {
  const Clock::time_point start{seconds(1000)};
  StatusTracker status(3, {}, start);
  const auto beat = [&](int rank, std::uint64_t sequence, double age_s, Clock::time_point when) {
    message::Beat beat;
    beat.collective = CollectiveStatus{sequence, "all_reduce", 1, true, age_s};
    status.beat(rank, beat, when);
  };
  beat(0, 6, 0.1, start);
  beat(1, 6, 0.1, start);
  beat(2, 6, 0.1, start);
  beat(0, 9, 11, start + seconds(14));
  EXPECT_FALSE(status.stuck(seconds(10), start + seconds(14))) << "both may have come to it since";
  beat(1, 9, 11, start + seconds(14));
  beat(2, 8, 11, start + seconds(14));
  ASSERT_TRUE(status.stuck(seconds(10), start + seconds(14)));
  EXPECT_EQ(status.stuck(seconds(10), start + seconds(14))->rank, 2);
}

TEST(RunStatusTest, AStatusListsTheLowestRanksAndTheSilentOnes) {
  const Clock::time_point start{seconds(1000)};
  constexpr int kRanks = 2000;
  StatusTracker status(kRanks, {}, start);
  RankSet others(1, kRanks - 1);
  others.remove(1500);
  const auto later = start + seconds(1);
  status.beat(0, {}, later);
  status.heard_of({others, {{1500, seconds(1)}}}, later);
  EXPECT_EQ(status.tick(later).size(), 1U);
  const RunStatus now = status.run_status(10, later);
  ASSERT_EQ(now.ranks.size(), 512U);
  EXPECT_EQ(now.ranks[510].rank, 510);
  EXPECT_EQ(now.ranks[511].rank, 1500);
  EXPECT_TRUE(now.ranks[511].stalled);
  EXPECT_EQ(now.world_size, kRanks);
}

TEST(RunStatusTest, RanksAreHeardThroughOthers) {
  const Clock::time_point start{seconds(1000)};
  StatusTracker status(6, {}, start);
  auto now = start;
  const auto own_beat_and_tick = [&] {
    status.beat(0, {}, now);
    return status.tick(now);
  };
  for (; now < start + seconds(5); now += milliseconds(600)) {
    status.heard_of({RankSet(1, 5), {}}, now);
    EXPECT_TRUE(own_beat_and_tick().empty());
  }
  status.heard_of({RankSet(1, 5), {}}, now);
  RankSet others(1, 5);
  others.remove(3);
  status.heard_of({others, {{3, milliseconds(950)}}}, now);
  const auto silent = own_beat_and_tick();
  ASSERT_EQ(silent.size(), 1U);
  EXPECT_EQ(silent[0].rank, 3);
  EXPECT_EQ(silent[0].state, RankChangeKind::stalled);
  status.heard_of({RankSet(1, 5), {}}, now);
  EXPECT_EQ(own_beat_and_tick().size(), 1U) << "it is back";
}

}  // namespace
}  // namespace footplate
