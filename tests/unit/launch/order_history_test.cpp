// What a run's starts and journal say about its newest state.
#include "console/launch/run_dir/order_history.h"

#include <gmock/gmock.h>
#include <stdlib.h>

#include <fstream>

#include "run_files/json_file.h"
#include "runtime/schema/schema_table.h"

namespace footplate {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::IsEmpty;

class HistoryTest : public testing::Test {
 protected:
  HistoryTest() {
    std::string name = (fs::temp_directory_path() / "fp-history-XXXXXX").string();
    folder_ = ::mkdtemp(name.data());
  }
  ~HistoryTest() override { fs::remove_all(folder_); }

  /// A start that goes on at `step` from a checkpoint whose last order is `journal`.
  void start(int number, std::int64_t step, std::uint64_t journal, const Json& given = Json::object(),
             bool loaded = false) {
    const std::string time = "T" + std::to_string(number);
    append("starts.jsonl", Json({{"start", number},
                                 {"time", time},
                                 {"step", step},
                                 {"journal", journal},
                                 {"given", given},
                                 {"loaded", loaded}})
                               .dump());
    append("journal.lua", "-- start \"" + time + "\" of run t");
  }

  void order(std::uint64_t id, std::int64_t step, const std::string& body = "{ log = { every = 5 } }") {
    append("journal.lua", "-- order " + std::to_string(id) + " · ann · s1 · now\nat(" + std::to_string(step) +
                              ", " + body + ")");
  }

  void result(int start, const std::string& reason, int code = 75) {
    ASSERT_TRUE(write_json_file(folder_ / ("result-" + std::to_string(start) + ".json"),
                                {{"code", code}, {"reason", reason}}));
  }

  History history() {
    const auto read = read_history(folder_, schema_);
    EXPECT_TRUE(read) << read.error().message;
    return *read;
  }

  /// orders-START.json as schedule_again wrote it: ids, with a minus where left out.
  std::vector<int> scheduled(int start) {
    EXPECT_TRUE(schedule_again(folder_, start, schema_));
    const auto file = read_json_file(folder_ / ("orders-" + std::to_string(start) + ".json"));
    std::vector<int> ids;
    if (!file) return ids;
    for (const Json& entry : (*file)["orders"])
      ids.push_back(entry["id"].get<int>() * (entry.value("left_out", false) ? -1 : 1));
    return ids;
  }

  static std::vector<int> ids(const std::vector<Order>& orders) {
    std::vector<int> list;
    for (const Order& order : orders) list.push_back(static_cast<int>(order.id));
    return list;
  }

  void append(const std::string& name, const std::string& line) {
    std::ofstream(folder_ / name, std::ios::app) << line << "\n";
  }

  fs::path folder_;
  const Schema schema_ = with_an_action_of_a_task();

 private:
  static Schema with_an_action_of_a_task() {
    Schema schema = runtime_schema();
    schema.actions.emplace_back().name = "task.reset_head";
    return schema;
  }
};

TEST_F(HistoryTest, OfOneStartIsItsJournal) {
  start(1, 0, 0);
  order(1, 10);
  order(3, 20);
  order(2, 30);  // for a later step
  EXPECT_THAT(ids(history().applied), ElementsAre(1, 3, 2));
  EXPECT_THAT(history().ahead, IsEmpty());
}

TEST_F(HistoryTest, OfOneStartMayHaveSeveralParts) {
  start(1, 0, 0);
  append("journal.lua", "-- start \"T1\" of run t");  // a console that was replaced before the first order
  order(1, 10);
  EXPECT_THAT(ids(history().applied), ElementsAre(1));
}

TEST_F(HistoryTest, AStartThatWasNotWrittenToItsEndIsNone) {
  start(1, 0, 0);
  order(1, 10);
  std::ofstream(folder_ / "starts.jsonl", std::ios::app) << R"({"start": 2, "ti)";
  EXPECT_THAT(ids(history().applied), ElementsAre(1));
}

TEST_F(HistoryTest, GoesBackWithTheRun) {
  start(1, 0, 0);
  order(1, 10);
  order(3, 20);
  order(2, 30);
  order(4, 40, "function() eval.now() end");
  start(2, 25, 3);
  EXPECT_THAT(ids(history().applied), ElementsAre(1, 3));
  EXPECT_THAT(ids(history().ahead), ElementsAre(2)) << "what was called isn't called again";
  order(2, 30);
  order(5, 33);
  EXPECT_THAT(ids(history().applied), ElementsAre(1, 3, 2, 5));
  EXPECT_THAT(history().ahead, IsEmpty());
}

/// In place, after a lost rank: what was in force from the checkpoint on isn't applied behind what came then.
TEST_F(HistoryTest, StepsThatWereMadeTwiceKeepTheirOrders) {
  start(1, 0, 0);
  order(1, 10);
  order(2, 45);
  order(3, 50);
  order(4, 42);
  start(2, 40, 1);
  EXPECT_THAT(ids(history().applied), ElementsAre(1));
  EXPECT_THAT(ids(history().ahead), ElementsAre(2, 3, 4));
  for (const Order& order : history().ahead) EXPECT_EQ(order.at_step, 42) << order.id;
}

TEST_F(HistoryTest, WhatWasAheadStaysAheadAfterAnotherCrash) {
  start(1, 0, 0);
  order(1, 10);
  order(2, 30);
  start(2, 5, 0);
  order(1, 10);
  start(3, 5, 0);
  EXPECT_THAT(ids(history().ahead), ElementsAre(1, 2));
}

TEST_F(HistoryTest, KnowsTheCheckpointByStepWhereTheJournalLacksItsOrder) {
  start(1, 0, 0);
  order(1, 10);
  order(2, 20);
  order(4, 20);
  start(2, 20, 3);
  EXPECT_THAT(ids(history().applied), ElementsAre(1, 2));
  EXPECT_THAT(ids(history().ahead), ElementsAre(4));
}

TEST_F(HistoryTest, LeavesOutTheLastOneThatCrashedTwice) {
  start(1, 0, 0);
  order(1, 10);
  order(2, 20);
  order(3, 30);
  result(1, "a rank was lost to SIGKILL");
  EXPECT_THAT(scheduled(2), ElementsAre(1, 2, 3));
  start(2, 5, 0);
  order(1, 10);
  order(2, 20);
  result(2, "a rank was lost to SIGKILL");
  EXPECT_THAT(scheduled(3), ElementsAre(1, -2, 3)) << "3 was not reached, 2 was the last";
  start(3, 5, 0);
  order(1, 10);
  order(3, 30);
  result(3, "signal");
  EXPECT_THAT(scheduled(4), ElementsAre(1, 3, -2)) << "a signal is no failure; 2 stays left out";
}

TEST_F(HistoryTest, AReplayHasWhatDecidesAboutTheState) {
  start(1, 0, 0);
  order(1, 10, "function() set{ log = { every = 5 } }; eval.now() end");
  order(2, 20, "function() run.pause() end");
  order(3, 25, "{ run = { time_limit = 60 }, comm = { auto = \"apply\" } }");
  order(4, 30, "function() run.stop{ resumable = true } end");
  start(2, 30, 4, {{"sched.base_lr", 0.5}});
  order(5, 35);
  order(6, 40, "function() run.stop() end");
  const auto orders = orders_to_replay(history());
  ASSERT_THAT(ids(orders), ElementsAre(1, 7, 5, 6));
  EXPECT_TRUE(orders[0].calls.empty());
  EXPECT_EQ(orders[1].changes.at(0).name, "sched.base_lr");
  EXPECT_EQ(orders[1].at_step, 30);
  EXPECT_EQ(orders[3].calls.at(0).action, "run.stop");
}

TEST_F(HistoryTest, WhatTheTaskDidIsDoneAgain) {
  start(1, 0, 0);
  order(1, 10, "function() task.reset_head() end");
  order(2, 30, "function() task.reset_head(); eval.now() end");
  order(3, 40, "function() eval.now() end");
  const auto replayed = orders_to_replay(history());
  ASSERT_THAT(ids(replayed), ElementsAre(1, 2));
  EXPECT_EQ(replayed[1].calls.size(), 1U);
  EXPECT_EQ(replayed[1].calls.at(0).action, "task.reset_head");
  start(2, 20, 1);
  ASSERT_THAT(ids(history().ahead), ElementsAre(2)) << "past the checkpoint";
  EXPECT_EQ(history().ahead[0].calls.size(), 1U);
}

TEST_F(HistoryTest, WhatALoadLeftBehindIsNotAppliedAgain) {
  start(1, 0, 0);
  order(1, 10);
  order(2, 40);
  order(3, 60, "function() ckpt.load{ ref = \"-30\" } end");
  start(2, 30, 1, {{"optim.lr_scale", 0.5}}, /*loaded=*/true);
  order(4, 35);
  EXPECT_THAT(scheduled(3), ElementsAre(1, 4)) << "a crash of that start";
  EXPECT_EQ(history().loaded, 2);
  const auto orders = orders_to_replay(history());
  ASSERT_THAT(ids(orders), ElementsAre(1, 5, 4));
  EXPECT_EQ(orders[1].changes.at(0).name, "optim.lr_scale");
  EXPECT_EQ(orders[1].at_step, 30);
}

TEST_F(HistoryTest, AReplayIsNotStartedAgain) {
  start(1, 0, 0);
  order(1, 10, "function() set{ log = { every = 5 } }; run.restart() end");
  start(2, 10, 1);
  order(2, 20, "function() run.restart{ reason = \"x\" } end");
  const auto orders = orders_to_replay(history());
  ASSERT_THAT(ids(orders), ElementsAre(1, 2));
  EXPECT_TRUE(orders[0].calls.empty()) << "it went on from there";
  EXPECT_EQ(orders[1].calls.at(0).action, "run.stop") << "nothing came after that one";
}

TEST_F(HistoryTest, KnowsWhatTheTaskHasLost) {
  start(1, 0, 0);
  order(1, 10, "{ task = { noise = 0.3 } }");
  order(2, 30, "{ log = { every = 5 }, task = { noise = 0.5 } }");
  start(2, 20, 1, {{"task.noise", 0.4}});
  ASSERT_EQ(history().gone.size(), 3U);
  EXPECT_EQ(history().gone[1].order, 2U);
  EXPECT_EQ(history().gone[2].order, 0U) << "given to the second start";
  EXPECT_EQ(change_text(history().gone[2]), "task.noise = 0.4");
  EXPECT_THAT(scheduled(3), ElementsAre(1, 2));
  EXPECT_THAT(*schedule_again(folder_, 3, schema_),
              ElementsAre("order 2 for step 30 is applied again without task.noise = 0.5: the task doesn't "
                          "declare that any more"));
  order(2, 30, "{ log = { every = 5 }, task = { noise = 0.5 } }");
  EXPECT_EQ(history().gone.size(), 3U) << "the same order";
  start(3, 15, 1, {}, /*loaded=*/true);
  ASSERT_EQ(history().gone.size(), 1U) << "the others were left behind";
  EXPECT_EQ(history().gone[0].order, 1U);
}

}  // namespace
}  // namespace footplate
