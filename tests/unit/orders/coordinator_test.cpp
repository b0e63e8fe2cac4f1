#include "runtime/orders/coordinator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/schema/schema_table.h"
#include "tests/unit/orders/as_json.h"

namespace footplate {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::HasSubstr;
using Clock = std::chrono::steady_clock;

/// Rank 0's state machine with two ranks that the test plays.
class CoordinatorTest : public ::testing::Test {
 protected:
  void order(const std::string& ref, const Json& more = Json::object()) {
    Json order = {{"session", "s1"}, {"changes", {{{"name", "log.every"}, {"value", 3}}}}};
    order.update(more);
    coordinator_.submit(testing::submitted(ref, order), now_);
  }
  void answer(int rank, const Json& message) {
    coordinator_.handle(rank, testing::to_rank_zero(message), now_);
  }
  void prepared(std::uint64_t ticket) {
    for (int rank : {0, 1}) answer(rank, {{"t", "prepared"}, {"ticket", ticket}});
  }
  void fenced(std::uint64_t ticket, std::int64_t step0, std::int64_t step1) {
    answer(0, {{"t", "fenced"}, {"ticket", ticket}, {"step", step0}});
    answer(1, {{"t", "fenced"}, {"ticket", ticket}, {"step", step1}});
  }
  void applied(int rank, std::uint64_t order, std::int64_t step, const std::string& digest = "d") {
    answer(rank, {{"t", "applied"}, {"order", order}, {"step", step}, {"digest", digest}});
  }
  void pass(Clock::duration time) {
    now_ += time;
    coordinator_.tick(now_);
  }
  const Json& last_sent() const { return sent_.back(); }
  std::string last_state() const { return reports_.back().second.value("state", ""); }

  Schema schema_ = runtime_schema();
  Clock::time_point now_{seconds(1000)};
  StatusTracker status_{2, {}, now_};
  std::vector<Json> sent_;
  std::vector<std::pair<std::string, Json>> reports_;
  Coordinator coordinator_{{schema_,
                            status_,
                            2,
                            [this](const message::ToRanks& message) { sent_.push_back(to_json(message)); },
                            [this](const Report& report) { reports_.push_back(testing::told(report)); },
                            {},
                            100}};
};

TEST_F(CoordinatorTest, CommitsAtTheHighestFenceAndConfirms) {
  order("a");
  EXPECT_EQ(last_sent()["t"], "prepare");
  prepared(1);
  EXPECT_EQ(last_sent()["t"], "fence");
  fenced(1, 11, 14);
  EXPECT_EQ(last_sent(), (Json{{"t", "commit"}, {"ticket", 1}, {"step", 14}, {"targeted", false}}));
  applied(1, 100, 14);
  EXPECT_EQ(last_state(), "committed");
  applied(0, 100, 14);
  EXPECT_EQ(last_state(), "applied");
  EXPECT_EQ(reports_.back().second["applied"]["ranks"], 2);
  EXPECT_EQ(coordinator_.final_reports().size(), 1U);
}

TEST_F(CoordinatorTest, OpensOneOrderAtATime) {
  order("a");
  order("b");
  EXPECT_EQ(sent_.size(), 1U);
  prepared(1);
  fenced(1, 5, 5);
  EXPECT_EQ(last_sent()["t"], "prepare");
  EXPECT_EQ(last_sent()["order"]["id"], 101);
}

TEST_F(CoordinatorTest, NeverCommitsOrdersWithoutTargetOutOfTheirOrder) {
  order("a");
  prepared(1);
  fenced(1, 11, 12);
  order("b");  // meanwhile both ranks stand in a pause at 11
  prepared(2);
  fenced(2, 11, 11);
  EXPECT_EQ(last_sent()["step"], 12);
  order("c", {{"at_step", 11}});
  prepared(3);
  fenced(3, 11, 11);
  EXPECT_EQ(last_sent()["step"], 12);
  EXPECT_EQ(last_sent()["targeted"], false);
}

TEST_F(CoordinatorTest, SaysWhomItWaitsForRarerAndRarerAndAbortsInTheEnd) {
  order("a");
  answer(0, {{"t", "prepared"}, {"ticket", 1}});
  answer(1,
         {{"t", "beat"},
          {"step", 812},
          {"phase", "reduce"},
          {"phase_s", 0.5},
          {"state", "running"},
          {"collective", {{"sequence", 4471}, {"kind", "all_reduce"}, {"running", true}, {"age_s", 0.5}}}});
  reports_.clear();
  for (int i = 0; i < 49; ++i) pass(milliseconds(100));
  int waiting = 0;
  for (const auto& [topic, report] : reports_) {
    if (topic != "order") continue;
    EXPECT_EQ(report["state"], "waiting");
    EXPECT_THAT(report["text"].get<std::string>(),
                HasSubstr("waiting for rank 1: step 812, all_reduce #4471, "));
    ++waiting;
  }
  EXPECT_EQ(waiting, 2) << "after 1 s and after 3 s";
  pass(milliseconds(100));
  EXPECT_EQ(last_state(), "aborted");
  EXPECT_EQ(last_sent()["t"], "abort");
  prepared(1);  // too late
  EXPECT_EQ(last_sent()["t"], "abort");
}

TEST_F(CoordinatorTest, TakesBackACommittedOrderOnlyWhereNobodyCanHaveReachedIt) {
  order("a", {{"at_step", 50}});
  prepared(1);
  fenced(1, 10, 10);
  coordinator_.withdraw({100, ""}, now_);
  EXPECT_EQ(last_sent()["withdraws"], 100);
  prepared(2);
  fenced(2, 50, 50);
  EXPECT_EQ(last_sent()["t"], "abort");
  coordinator_.withdraw({{}, "a"}, now_);
  prepared(3);
  fenced(3, 49, 49);
  EXPECT_EQ(last_sent(), (Json{{"t", "commit"}, {"ticket", 3}, {"withdraws", 100}}));
  EXPECT_EQ(last_state(), "withdrawn");
}

TEST_F(CoordinatorTest, AWithdrawalThatWaitsWakesNobodyBeforeItsTimeIsOver) {
  order("a", {{"at_step", 50}});
  prepared(1);
  fenced(1, 10, 10);
  coordinator_.withdraw({100, ""}, now_);
  pass(milliseconds(2000));  // no line says whom a withdrawal waits for
  EXPECT_GT(coordinator_.next_tick(), now_);
}

TEST_F(CoordinatorTest, RaisesTheAlarmWhereRanksDisagree) {
  order("a");
  prepared(1);
  fenced(1, 5, 5);
  applied(0, 100, 5, "one");
  applied(1, 100, 5, "two");
  EXPECT_EQ(last_state(), "applied");
  EXPECT_EQ(reports_.back().second["applied"]["ranks"], 1);
  EXPECT_THAT(reports_.back().second["error"].get<std::string>(), HasSubstr("rank 1 differs"));
  EXPECT_FALSE(status_.run_status(10, now_).notes.empty());
}

TEST_F(CoordinatorTest, ARankThatAnswersTwiceDoesNotAnswerForAnother) {
  order("a");
  for (int i = 0; i < 2; ++i) answer(0, {{"t", "prepared"}, {"ticket", 1}});
  EXPECT_EQ(last_sent()["t"], "prepare");
  answer(1, {{"t", "prepared"}, {"ticket", 1}});
  EXPECT_EQ(last_sent()["t"], "fence");
  for (int i = 0; i < 2; ++i) answer(1, {{"t", "fenced"}, {"ticket", 1}, {"step", 14}});
  EXPECT_EQ(last_sent()["t"], "fence");
  answer(0, {{"t", "fenced"}, {"ticket", 1}, {"step", 11}});
  EXPECT_EQ(last_sent(), (Json{{"t", "commit"}, {"ticket", 1}, {"step", 14}, {"targeted", false}}));
  answer(1, {{"t", "prepared"}, {"ticket", 1}});  // late: nobody asks any more
  for (int i = 0; i < 2; ++i) applied(1, 100, 14);
  EXPECT_EQ(last_state(), "committed");
  applied(0, 100, 14);
  EXPECT_EQ(last_state(), "applied");
  EXPECT_EQ(sent_.size(), 3U);
}

TEST_F(CoordinatorTest, CountsAnewWithTheRanksThatAreLeft) {
  order("a");
  answer(1, {{"t", "prepared"}, {"ticket", 1}});
  coordinator_.suspend();
  status_.world_changed({0}, now_);
  coordinator_.go_on(1, 0, now_);
  EXPECT_EQ(last_sent()["ticket"], 2);
  answer(0, {{"t", "prepared"}, {"ticket", 1}});  // late: the answer to the first question
  EXPECT_EQ(last_sent()["t"], "prepare");
  answer(0, {{"t", "prepared"}, {"ticket", 2}});
  EXPECT_EQ(last_sent()["t"], "fence");
  answer(0, {{"t", "fenced"}, {"ticket", 2}, {"step", 9}});
  EXPECT_EQ(last_sent()["t"], "commit");
  applied(0, 100, 9);
  EXPECT_EQ(last_state(), "applied");
  EXPECT_EQ(reports_.back().second["applied"]["ranks"], 1);
}

TEST_F(CoordinatorTest, EndsOnceEveryRankAtTheEndHasHeardOfEveryCommit) {
  answer(0, {{"t", "end"}, {"step", 20}, {"commits", 0}});
  order("a");
  prepared(1);
  fenced(1, 20, 20);
  applied(0, 100, 20);
  applied(1, 100, 20);
  answer(1, {{"t", "end"}, {"step", 20}, {"commits", 0}});  // said before it heard of the commit
  answer(1, {{"t", "end"}, {"step", 20}, {"commits", 1}});
  EXPECT_FALSE(coordinator_.ended());
  answer(0, {{"t", "end"}, {"step", 20}, {"commits", 1}});
  EXPECT_TRUE(coordinator_.ended());
  EXPECT_EQ(last_sent()["t"], "finish");
  order("b");
  EXPECT_EQ(last_state(), "refused");
}

}  // namespace
}  // namespace footplate
