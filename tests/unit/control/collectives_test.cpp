// What rank 0 makes of collectives that hang, differ or aren't come to: the state machines without threads,
// and on whole ranks over SimWorld.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <mutex>
#include <random>
#include <thread>

#include "runtime/watch/collective_watch.h"
#include "runtime/watch/rank_barrier.h"
#include "runtime/watch/rank_inquiries.h"
#include "tests/unit/control/sim_run.h"

namespace footplate {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Clock = std::chrono::steady_clock;

LedgerEntry gradients(std::int64_t elements, std::int64_t step = 5) {
  LedgerEntry made = entry(Collective::all_reduce, {nullptr, elements, DataType::float32}, "gradients");
  made.phase = Phase::reduce;
  made.step = step;
  return made;
}

/// Rank 0's watch over a world whose ledgers the test writes.
class CollectiveWatchTest : public ::testing::Test {
 protected:
  CollectiveWatchTest() {
    for (int rank = 0; rank < kRanks; ++rank) {
      message::Beat beat;
      beat.step = 5;
      beat.phase = Phase::evaluation;
      beat.phase_s = 3;
      status_.beat(rank, beat, now_);
      all_launch(gradients(1000), {rank}, 4);
    }
  }

  /// These ranks launch it so many times and, where `finished`, have it behind them.
  void all_launch(const LedgerEntry& entry, const std::vector<int>& ranks, int times = 1,
                  bool finished = true) {
    for (const int rank : ranks) {
      Ledger& ledger = ledgers_[static_cast<std::size_t>(rank)];
      for (int i = 0; i < times; ++i) {
        const auto sequence = ledger.enqueue(entry);
        ledger.start(sequence);
        if (finished) ledger.finish(sequence);
      }
    }
  }
  void overdue(std::uint64_t sequence) {
    message::Overdue overdue;
    overdue.sequence = sequence;
    overdue.limit_s = 2;
    overdue.setting = "comm.eval_timeout_s";
    watch_.handle(0, overdue, now_);
  }
  void answer(int rank, LedgerEntry::Clock::time_point asked = LedgerEntry::Clock::now()) {
    const LedgerAnswer reply = answer_of(ledgers_[static_cast<std::size_t>(rank)], asked);
    inquiries_.handle(rank, {"ledger", to_json(reply)}, now_);
  }
  void answer_all() {
    const auto asked = LedgerEntry::Clock::now();  // the same for all, however long an answer takes here
    for (int rank = 0; rank < kRanks; ++rank) answer(rank, asked);
  }
  void beat(int rank) {
    const Ledger& ledger = ledgers_[static_cast<std::size_t>(rank)];
    const auto newest = ledger.find(ledger.newest());
    message::Beat beat;
    beat.launched = {newest->sequence, newest->digest};
    watch_.handle(rank, beat, now_);
  }
  std::string text() const { return reports_.empty() ? "" : reports_.back().text; }
  std::string verdict() const { return reports_.empty() ? "" : reports_.back().verdict; }
  std::vector<int> ranks() const {
    return reports_.empty() ? std::vector<int>() : reports_.back().ranks.value_or(std::vector<int>());
  }
  void heard(const RankQuery& query, const RankAnswers& heard) {
    if (query.merge != nullptr) {
      merged_ = query.merge(heard, status_, advice_, now_);
      return;
    }
    std::map<int, LedgerAnswer> ledgers;
    for (const auto& [rank, answer] : heard.answers)
      ledgers.emplace(rank, testing::from_json<LedgerAnswer>(answer));
    watch_.answered(std::move(ledgers), now_);
  }

  static constexpr int kRanks = 3;
  Clock::time_point now_{seconds(1000)};
  ControlTimes times_;
  Schema schema_ = runtime_schema();
  StatusTracker status_{kRanks, times_, now_};
  std::array<Ledger, kRanks> ledgers_;
  std::vector<Json> sent_;  ///< to rank 0
  std::vector<Warning> reports_;
  Json merged_;
  Advice advice_{{schema_, status_, ledgers_.data(), kRanks, 1, [](const Order&) { return std::uint64_t{0}; },
                  [](const Warning&) {}}};
  RankInquiries inquiries_{{kRanks,
                            [this](int to, const message::ToRanks& message) {
                              if (to == 0) sent_.push_back(to_json(message));
                            },
                            [this](const message::ToRanks& message) { sent_.push_back(to_json(message)); },
                            [this](const RankQuery& query, const RankAnswers& answers, Clock::time_point) {
                              heard(query, answers);
                            },
                            times_}};
  CollectiveWatch watch_{
      {status_, ledgers_.data(), kRanks,
       [this](Clock::time_point now) { inquiries_.ask(*find_rank_query(kLedgerQuery), std::nullopt, now); },
       [this](const Warning& warning) { reports_.push_back(warning); }}};
};

TEST_F(CollectiveWatchTest, NamesWhoIsMissingAndWhereItLastWas) {
  all_launch(gradients(1000), {0, 2}, 1, false);
  overdue(5);
  EXPECT_EQ(sent_.back(), (Json{{"t", "inquire"}, {"what", "ledger"}}));
  answer(0);
  answer(1);
  EXPECT_THAT(reports_, IsEmpty());
  answer(2);
  ASSERT_EQ(reports_.size(), 1U);
  EXPECT_EQ(verdict(), "missing");
  EXPECT_THAT(ranks(), ElementsAre(1));
  EXPECT_THAT(text(),
              AllOf(HasSubstr("all_reduce #5 of gradients (1000 float32) is past its deadline of 2 s"),
                    HasSubstr("waits for rank 1: step 5, evaluation, 3.0 s. If that is "
                              "normal, raise comm.eval_timeout_s")));
  overdue(5);  // another rank's watchdog
  EXPECT_EQ(sent_.size(), 1U);
  EXPECT_FALSE(inquiries_.awaiting_answers());
}

TEST_F(CollectiveWatchTest, WhoDoesNotEvenAnswerIsMissing) {
  all_launch(gradients(1000), {0, 2}, 1, false);
  overdue(5);
  answer(0);
  answer(2);
  EXPECT_EQ(inquiries_.next_tick(), now_ + times_.inquiry);
  now_ += times_.inquiry;
  inquiries_.tick(now_);
  EXPECT_THAT(text(), HasSubstr("waits for rank 1: step 5, evaluation, last heard 1.0 s ago"));
}

TEST_F(CollectiveWatchTest, NamesWhoCameLastWhereAllAreInItAndSaysItsEnd) {
  all_launch(gradients(1000), {0, 1}, 1, false);
  std::this_thread::sleep_for(milliseconds(2));  // makes rank 2 the last one
  all_launch(gradients(1000), {2}, 1, false);
  overdue(5);
  answer_all();
  EXPECT_EQ(verdict(), "slow");
  EXPECT_THAT(text(), HasSubstr("rank 2 came last"));
  EXPECT_EQ(status_.run_status(10, now_).notes.size(), 1U);
  message::Overdue over;
  over.sequence = 5;
  over.name = "gradients";
  over.limit_s = 2;
  over.over = true;
  over.took_s = 12.3;
  watch_.handle(1, over, now_);
  EXPECT_EQ(text(), "all_reduce #5 of gradients has ended after 12.3 s");
  watch_.handle(2, over, now_);
  EXPECT_EQ(reports_.size(), 2U) << "once";
  EXPECT_THAT(status_.run_status(10, now_).notes, IsEmpty());
}

TEST_F(CollectiveWatchTest, NamesDifferentCollectivesWithSequenceKindAndSizeOnEachRank) {
  all_launch(gradients(1000), {0, 2}, 1, false);
  all_launch(entry(Collective::broadcast, {nullptr, 7, DataType::uint8}, "path"), {1}, 1, false);
  overdue(5);
  answer_all();
  EXPECT_EQ(verdict(), "different");
  EXPECT_THAT(ranks(), ElementsAre(1));
  EXPECT_EQ(reports_.back().sequence, 5U);
  EXPECT_THAT(
      text(),
      HasSubstr("#5 is all_reduce of gradients, 1000 float32, step 5 on rank 0, 2; broadcast of path, "
                "7 uint8, step 0 on rank 1"));
}

/// Nothing hangs: the sizes fit, and the sums are wrong. The digests in the heartbeats differ.
TEST_F(CollectiveWatchTest, FindsOutByTheHeartbeatsWhereNothingHangs) {
  beat(1);
  beat(2);
  EXPECT_THAT(sent_, IsEmpty());
  all_launch(gradients(1000), {2});  // one too many
  for (std::int64_t step = 6; step < 9; ++step) all_launch(gradients(1000, step), {0, 1, 2});
  beat(1);
  EXPECT_THAT(sent_, IsEmpty());
  beat(2);
  EXPECT_THAT(sent_, IsEmpty()) << "rank 0 hasn't come to what rank 2 is at";
  all_launch(gradients(1000, 9), {0});
  beat(0);
  ASSERT_EQ(sent_.size(), 1U);
  answer_all();
  EXPECT_EQ(verdict(), "different");
  EXPECT_THAT(ranks(), ElementsAre(2));
  EXPECT_THAT(text(),
              HasSubstr("#5 is all_reduce of gradients, 1000 float32, step 6 on rank 0, 1; all_reduce of "
                        "gradients, 1000 float32, step 5 on rank 2"));
  beat(2);
  EXPECT_EQ(sent_.size(), 1U) << "said once";
}

TEST_F(CollectiveWatchTest, NamesWhatHangsAfterRanksThatDiffer) {
  all_launch(gradients(1000), {0, 2});
  all_launch(gradients(1001), {1});
  beat(1);
  answer_all();
  ASSERT_EQ(verdict(), "different");
  all_launch(gradients(1000, 6), {0, 2}, 1, false);
  overdue(6);
  answer_all();
  ASSERT_EQ(reports_.size(), 2U);
  EXPECT_EQ(verdict(), "missing");
  EXPECT_THAT(ranks(), ElementsAre(1));
  EXPECT_THAT(text(), HasSubstr("all_reduce #6 of gradients"));
}

/// A step launches all its buckets before it waits for the first one.
TEST_F(CollectiveWatchTest, FindsTheOneThatHangsBehindHundredsThatWait) {
  all_launch(gradients(1000), {0, 1, 2}, 400, false);
  overdue(5);
  answer_all();
  ASSERT_EQ(reports_.size(), 1U);
  EXPECT_EQ(verdict(), "slow");
  EXPECT_THAT(text(), HasSubstr("all_reduce #5 of gradients"));
}

TEST_F(CollectiveWatchTest, NamesWhoIsMissingFromOneBehindWhichHundredsWait) {
  all_launch(gradients(1000), {0, 2}, 400, false);
  overdue(5);
  answer_all();
  ASSERT_EQ(reports_.size(), 1U);
  EXPECT_EQ(verdict(), "missing");
  EXPECT_THAT(ranks(), ElementsAre(1));
  EXPECT_THAT(text(), HasSubstr("all_reduce #5 of gradients"));
}

TEST_F(CollectiveWatchTest, ReportsThePatternsOfThoseThatAnswer) {
  inquiries_.ask(*find_rank_query("comm"), std::nullopt, now_);
  EXPECT_EQ(sent_.back(), (Json{{"t", "inquire"}, {"what", "comm"}}));
  inquiries_.handle(1, {"comm", {{{"kind", "all_reduce"}, {"count", 4}}, "nonsense"}}, now_);
  inquiries_.tick(now_ + times_.inquiry);
  const auto report = testing::from_json<CommReport>(merged_);
  ASSERT_EQ(report.patterns.size(), 1U) << "what can't be read is left out";
  EXPECT_EQ(report.patterns[0].kind, "all_reduce");
  EXPECT_EQ(report.patterns[0].count, 4);
  EXPECT_EQ(report.patterns[0].rank, 1);
}

class MeetingsTest : public ::testing::Test {
 protected:
  void arrive(int rank, std::uint64_t ticket) {
    rank_barrier_.handle(rank, {ticket, "the reduction", 5.0}, now_);
  }

  Clock::time_point now_{seconds(1000)};
  StatusTracker status_{3, {}, now_};
  std::vector<Json> sent_;
  RankBarrier rank_barrier_{
      {status_, 3, [this](const message::ToRanks& message) { sent_.push_back(to_json(message)); }}};
};

TEST_F(MeetingsTest, AreHeldOnceAllHaveCome) {
  arrive(1, 1);
  arrive(1, 1);
  arrive(0, 1);
  EXPECT_THAT(sent_, IsEmpty());
  EXPECT_TRUE(rank_barrier_.awaiting_ranks());
  arrive(2, 1);
  EXPECT_THAT(sent_, ElementsAre(Json{{"t", "met"}, {"ticket", 1}}));
  EXPECT_FALSE(rank_barrier_.awaiting_ranks());
}

TEST_F(MeetingsTest, FailForAllWithinTheBoundOfTheFirstAndNameWhoIsAbsent) {
  arrive(2, 7);
  now_ += seconds(4);
  arrive(0, 7);
  EXPECT_EQ(rank_barrier_.next_tick(), now_ + seconds(1));
  rank_barrier_.tick(now_);
  EXPECT_THAT(sent_, IsEmpty());
  now_ += seconds(1);
  rank_barrier_.tick(now_);
  ASSERT_EQ(sent_.size(), 1U);
  EXPECT_EQ(sent_[0]["ticket"], 7);
  EXPECT_THAT(sent_[0]["error"].get<std::string>(),
              HasSubstr("rank 1 didn't come to the reduction within 5 s; rank 1"));
  arrive(1, 7);  // too late: has been told already
  EXPECT_EQ(sent_.size(), 1U);
  EXPECT_FALSE(rank_barrier_.awaiting_ranks());
}

}  // namespace

namespace testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

/// What each rank's eval.now came to.
using Outcomes = std::map<int, std::vector<std::string>>;

/// A run whose eval.now is a meeting, to which `late` says how late each rank comes.
SimRun::Options meeting_ranks(int count, milliseconds bound, std::mutex& mutex, Outcomes& outcomes,
                              const std::function<milliseconds(int rank)>& late) {
  SimRun::Options options;
  options.ranks = count;
  options.call = [&mutex, &outcomes, bound, late](int rank, const Call&, std::int64_t step,
                                                  StepGate& gate) -> Result<CallResult> {
    const auto until = SteadyClock::now() + late(rank);
    while (SteadyClock::now() < until && !gate.abandon()) look_again();
    const auto met = gate.meet("the reduction of an evaluation", bound);
    std::lock_guard lock(mutex);
    outcomes[rank].push_back(met ? "met" : met.error().message);
    return DoneAtStep{step};
  };
  return options;
}

TEST(Meeting, IsHeldByAllRanksWhateverTheDelays) {
  std::mutex mutex;
  Outcomes outcomes;
  auto options = meeting_ranks(4, seconds(60), mutex, outcomes, [](int rank) { return milliseconds(rank); });
  options.world = {.seed = 3, .max_delay = std::chrono::microseconds(500)};
  SimRun run(options);
  for (int i = 0; i < 10; ++i) run.order(std::to_string(i), Json::object(), {"eval.now"});
  run.wait_for_order("9", "applied");
  run.stop();
  for (const auto& [rank, seen] : outcomes) EXPECT_EQ(seen, std::vector<std::string>(10, "met")) << rank;
  EXPECT_EQ(outcomes.size(), 4U);
}

/// The late rank hears that nobody waits any longer, gives up, and all train on.
TEST(Meeting, ThatOneRankDoesNotComeToIsSkippedByAll) {
  std::mutex mutex;
  Outcomes outcomes;
  SimRun run(meeting_ranks(3, milliseconds(500), mutex, outcomes,
                           [](int rank) { return rank == 2 ? std::chrono::hours(1) : milliseconds(0); }));
  run.order("a", Json::object(), {"eval.now"});
  run.order("b", Json::object(), {"eval.now"});
  run.wait_for_order("b", "applied");
  run.wait_for_step(run.step(0) + 20);
  run.stop();
  ASSERT_EQ(outcomes.size(), 3U);
  for (const auto& [rank, seen] : outcomes) {
    EXPECT_EQ(seen, outcomes[0]) << "the same on all ranks";
    ASSERT_EQ(seen.size(), 2U);
    // On a busy machine another one may be late as well: "rank 1, 2 didn't come".
    EXPECT_THAT(seen,
                ::testing::Each(HasSubstr("2 didn't come to the reduction of an evaluation within 0.5 s")));
  }
}

TEST(Overdue, IsFoundByTheWatchdogAndSaidOnce) {
  SimRun::Options options;
  options.ranks = 3;
  options.settings.emplace_back("comm.small_timeout_s", 0.05);
  SimRun run(options);
  for (const int rank : {0, 1}) run.ledger(rank).start(run.ledger(rank).enqueue(gradients(1000)));
  const Json warning =
      run.wait_for("warn", [](const Json& data) { return data.value("kind", "") == "collective"; });
  ASSERT_FALSE(warning.is_null());
  EXPECT_EQ(warning["verdict"], "missing");
  EXPECT_EQ(warning["ranks"], (Json{2}));
  for (const int rank : {0, 1}) run.ledger(rank).finish(1);
  const Json over =
      run.wait_for("warn", [](const Json& data) { return data.value("verdict", "") == "over"; });
  EXPECT_THAT(over.value("text", ""), HasSubstr("all_reduce #1 of gradients has ended after"));
  run.stop();
}

TEST(Overdue, DeadlinesAreLive) {
  SimRun::Options options;
  SimRun run(options);
  run.ledger(0).start(run.ledger(0).enqueue(gradients(1000)));
  run.order("a", {{"comm.small_timeout_s", 0.05}});
  EXPECT_FALSE(run.wait_for("warn", [](const Json& data) { return data.value("verdict", "") == "missing"; })
                   .is_null());
  run.ledger(0).finish(1);
  run.stop();
}

TEST(Overdue, DifferentCollectivesAreNamedThoughNothingHangs) {
  SimRun::Options options;
  options.times.heartbeat = milliseconds(20);
  SimRun run(options);
  const auto launch = [&](int rank, std::int64_t elements) {
    Ledger& ledger = run.ledger(rank);
    const auto sequence = ledger.enqueue(gradients(elements));
    ledger.start(sequence);
    ledger.finish(sequence);
  };
  for (int rank = 0; rank < 2; ++rank) launch(rank, 1000);
  launch(0, 1000);
  launch(1, 1001);
  const Json warning =
      run.wait_for("warn", [](const Json& data) { return data.value("kind", "") == "collective"; });
  EXPECT_EQ(warning.value("verdict", ""), "different");
  EXPECT_THAT(warning.value("text", ""),
              AllOf(HasSubstr("#2 is"), HasSubstr("1001 float32, step 5 on rank 1")));
  run.stop();
}

}  // namespace
}  // namespace testing
}  // namespace footplate
