// Ranks that die (recovery_run.h). Most take turns under a SimScheduler, where a seed is a run.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "runtime/comm/sim/sim_scheduler.h"
#include "runtime/control/recovery.h"
#include "tests/unit/control/recovery_run.h"

namespace footplate {
namespace {

using std::chrono::microseconds;
using testing::Checkpoints;
using testing::expect_whole;
using testing::RecoveryRun;
using testing::show_trace;

TEST(RecoveryTest, TheOthersGoOnWhereOneDied) {
  const SimScheduler scheduler(1);
  constexpr std::int64_t kSteps = 3000;
  RecoveryRun run(3, {.max_lateness = microseconds(30)}, kSteps);
  run.wait_for_step(0, 20);
  run.world.kill(1);
  run.join();
  expect_whole(run, {1}, kSteps);
  EXPECT_EQ(run.ranks[0]->worlds.size(), 1U);
  EXPECT_EQ(run.ranks[2]->worlds.back().second, 2);
  const auto told = run.reports("rank");
  ASSERT_EQ(told.size(), 1U);
  EXPECT_EQ(told[0]["state"], "lost");
  EXPECT_EQ(told[0]["ranks"], Json({1}));
  EXPECT_EQ(told[0]["world_size"], 2);
}

TEST(RecoveryTest, AnotherRankLeadsWhereRankZeroDied) {
  const SimScheduler scheduler(1);
  constexpr std::int64_t kSteps = 3000;
  RecoveryRun run(3, {.max_lateness = microseconds(30)}, kSteps);
  run.wait_for_step(1, 20);
  run.world.kill(0);
  run.await([&] { return run.leader == 1; });
  run.order(77);
  run.join();
  expect_whole(run, {0}, kSteps);
  ASSERT_EQ(run.ranks[1]->applied.size(), 1U);
  EXPECT_EQ(run.ranks[1]->applied[0].batches, 77);
}

/// An order for a later step, that rank 0 hasn't written down any more, is older than one that it has.
TEST(RecoveryTest, ANewLeaderTellsOfEachOrderThatTheJournalLacks) {
  const SimScheduler scheduler(1);
  RecoveryRun run(3, {}, 1000000000);
  const auto applied = [&](std::uint64_t id) {
    const auto told = run.reports("order");
    return std::ranges::count_if(told, [id](const Json& report) {
      return report["state"] == "applied" && report["applied"]["id"] == id;
    });
  };
  run.wait_for_step(1, 5);
  run.order(5, {{"at_step", run.ranks[0]->now() + 400}});
  run.order(6);
  run.await([&] { return applied(2) == 1; });
  EXPECT_EQ(applied(1), 0);
  run.await([&] { return applied(1) == 1; });
  run.recorded = {2};
  run.world.kill(0);
  run.await([&] { return run.leader == 1; });
  run.order(7, {{"calls", {{{"action", "run.stop"}, {"arguments", Json::object()}}}}});
  run.join();
  EXPECT_EQ(applied(1), 2) << "by the new rank 0, too";
  EXPECT_EQ(applied(2), 1);
  EXPECT_EQ(applied(3), 1) << "with the next id";
}

TEST(RecoveryTest, APausedRunStaysPausedWithFewerRanks) {
  const SimScheduler scheduler(1);
  RecoveryRun run(3, {}, 1000000000);
  run.order(5, {{"calls", {{{"action", "run.pause"}, {"arguments", Json::object()}}}}});
  run.await([&] { return !run.reports("run").empty(); });
  const std::int64_t at = run.ranks[0]->now();
  run.world.kill(1);
  run.await([&] { return !run.reports("rank").empty(); });
  run.order(6, {{"calls", {{{"action", "run.stop"}, {"arguments", Json::object()}}}}});
  run.join();
  expect_whole(run, {1}, at);
  EXPECT_EQ(run.ranks[0]->ending.reason, "asked");
}

TEST(RecoveryTest, NewCommunicatorsThatFailAreRefusedOnAll) {
  const SimScheduler scheduler(1);
  RecoveryRun run(3, {}, 1000000000);
  const auto settled = [&](std::size_t count) {
    run.await([&] {
      const auto told = run.reports("order");
      return std::count_if(told.begin(), told.end(), [](const Json& report) {
               return report["state"] == "applied" || report["state"] == "refused";
             }) == static_cast<std::ptrdiff_t>(count);
    });
    return run.reports("order").back();
  };
  run.order(5, {{"changes", {{{"name", "nccl.max_ctas"}, {"value", 8}}}}});
  const Json applied = settled(1);
  EXPECT_EQ(applied["applied"]["renewed_s"], 0.5) << applied;
  run.order(6, {{"changes",
                 {{{"name", "nccl.max_ctas"}, {"value", 9}}, {{"name", "eval.batches"}, {"value", 6}}}}});
  const Json refused = settled(2);
  EXPECT_EQ(refused["state"], "refused") << refused;
  EXPECT_NE(refused["error"].get<std::string>().find("rank 0: it can't be had"), std::string::npos)
      << refused;
  run.order(7, {{"changes", {{{"name", "nccl.max_ctas"}, {"value", 8}}}}});
  EXPECT_FALSE(settled(3)["applied"].contains("renewed_s")) << "it had that already";
  run.order(8, {{"calls", {{{"action", "run.stop"}, {"arguments", Json::object()}}}}});
  run.join();
  for (const auto& rank : run.ranks) EXPECT_EQ(rank->applied.size(), 3U) << "without the refused one";
}

/// Of the two that are left one has heard that all agreed, and the other hasn't.
TEST(RecoveryTest, WhatOneHasHeardOfNewCommunicatorsCountsForAll) {
  for (const std::int64_t ctas : {8, 9})
    for (const int deaf : {0, 1}) {
      SCOPED_TRACE("max_ctas " + std::to_string(ctas) + ", rank " + std::to_string(deaf) + " is deaf");
      const SimScheduler scheduler(1);
      RecoveryRun run(3, {}, 1000000000);
      run.wait_for_step(1, 5);
      run.ranks[static_cast<std::size_t>(deaf)]->deaf = [&] { run.world.kill(2); };
      run.order(6,
                {{"changes",
                  {{{"name", "nccl.max_ctas"}, {"value", ctas}}, {{"name", "eval.batches"}, {"value", 6}}}}});
      run.await([&] { return !run.reports("rank").empty(); });
      run.order(7);
      run.await([&] { return run.ranks[1]->applied.size() == (ctas == 8 ? 2U : 1U); });
      run.order(8, {{"calls", {{{"action", "run.stop"}, {"arguments", Json::object()}}}}});
      run.join();
      EXPECT_EQ(run.ranks[0]->applied, run.ranks[1]->applied);
      EXPECT_EQ(run.ranks[0]->applied.size(), ctas == 8 ? 3U : 2U) << "9 can't be had";
      EXPECT_EQ(run.ranks[0]->step, run.ranks[1]->step);
      for (const Json& warning : run.reports("warn"))
        EXPECT_NE(warning.value("kind", ""), "disagree") << warning;
      if (::testing::Test::HasFailure()) return show_trace();
    }
}

/// One that has heard of it would end, the other train on.
TEST(RecoveryTest, ALoadThatOneHasNotHeardOfComesToNothing) {
  for (const int deaf : {0, 1}) {
    SCOPED_TRACE("rank " + std::to_string(deaf) + " is deaf");
    const SimScheduler scheduler(1);
    RecoveryRun run(3, {}, 1000000000);
    run.wait_for_step(1, 5);
    run.ranks[static_cast<std::size_t>(deaf)]->deaf = [&] { run.world.kill(2); };
    run.order(6, {{"calls", {{{"action", "ckpt.load"}, {"arguments", Json::object()}}}}});
    run.await([&] { return !run.reports("rank").empty(); });
    run.order(7);
    run.await([&] { return run.ranks[1]->applied.size() == 2U; });
    run.order(8, {{"calls", {{{"action", "run.stop"}, {"arguments", Json::object()}}}}});
    run.join();
    expect_whole(run, {2}, run.ranks[0]->step);
    EXPECT_EQ(run.ranks[0]->ending.reason, "asked");
    EXPECT_EQ(run.ranks[1]->ending.reason, "asked");
    EXPECT_FALSE(run.ranks[0]->ending.load);
    if (::testing::Test::HasFailure()) return show_trace();
  }
}

/// It would stand for ever, and the others wait for it.
TEST(RecoveryTest, ALossThatOneRankAloneHasMetIsRecoveredFrom) {
  for (const int alone : {0, 1}) {
    SCOPED_TRACE("rank " + std::to_string(alone) + " is alone");
    const SimScheduler scheduler(1);
    RecoveryRun run(3, {}, 1000000000);
    run.wait_for_step(1, 5);
    run.ranks[static_cast<std::size_t>(alone)]->deaf = [] {};
    run.order(6, {{"calls", {{{"action", "ckpt.load"}, {"arguments", Json::object()}}}}});
    run.await([&] { return run.ranks[0]->worlds.size() == 1U; });
    run.order(7);
    run.await([&] { return run.ranks[1]->applied.size() == 2U; });
    run.order(8, {{"calls", {{{"action", "run.stop"}, {"arguments", Json::object()}}}}});
    run.join();
    expect_whole(run, {}, run.ranks[0]->step);
    for (const auto& rank : run.ranks) EXPECT_EQ(rank->ending.reason, "asked");
    if (::testing::Test::HasFailure()) return show_trace();
  }
}

TEST(RecoveryTest, ALoadEndsAllRanks) {
  const SimScheduler scheduler(1);
  RecoveryRun run(3, {}, 1000000000);
  run.wait_for_step(1, 5);
  run.order(6, {{"calls", {{{"action", "ckpt.load"}, {"arguments", {{"reason", "a spike"}}}}}}});
  run.join();
  for (const auto& rank : run.ranks) {
    EXPECT_EQ(rank->ending.reason, "load");
    EXPECT_TRUE(rank->ending.resumable);
    EXPECT_FALSE(rank->ending.save);
    EXPECT_EQ(rank->ending.note, "a spike");
    ASSERT_TRUE(rank->ending.load);
    EXPECT_EQ(rank->ending.load->order, "order 1 (ann)");
    EXPECT_EQ(rank->ending.load->step, rank->step);
  }
}

TEST(RecoveryTest, OneRankIsLeftOfFour) {
  const SimScheduler scheduler(1);
  constexpr std::int64_t kSteps = 4000;
  RecoveryRun run(4, {.max_lateness = microseconds(20)}, kSteps);
  for (const int rank : {2, 0, 3}) {
    run.wait_for_step(1, run.ranks[1]->now() + 50);
    run.world.kill(rank);
  }
  run.join();
  expect_whole(run, {0, 2, 3}, kSteps);
}

/// Orders, pauses and deaths at random moments. `seed` chooses everything, but where threads run freely.
/// `tree`: more ranks, which pass on to two others each, and stand long enough to be called silent.
void storm(std::uint64_t seed, bool tree = false) {
  std::mt19937_64 random(seed);
  const int ranks = (tree ? 4 : 2) + static_cast<int>(random() % (tree ? 6 : 3));
  SimOptions options;
  options.seed = seed;
  options.max_delay = microseconds(random() % 100);
  options.max_lateness = microseconds(random() % 60);
  RecoveryRun run(ranks, options, 1000000000, {{"comm.fan_out", std::int64_t{tree ? 2 : 32}}});
  std::set<int> dead;
  std::int64_t number = 100;
  std::vector<int> left;
  for (int rank = 0; rank < ranks; ++rank) left.push_back(rank);
  const int survivor = left[random() % left.size()];
  const int deaths = 1 + static_cast<int>(random() % static_cast<std::uint64_t>(ranks - 1));
  for (int death = 0; death < deaths; ++death) {
    run.wait_for_step(survivor, run.ranks[static_cast<std::size_t>(survivor)]->now() +
                                    static_cast<std::int64_t>(random() % 40));
    for (int i = static_cast<int>(random() % 4); i > 0; --i) {
      Json more = Json::object();
      if (random() % 4 == 0) more["at_step"] = run.ranks[static_cast<std::size_t>(survivor)]->now() + 10;
      if (random() % 2 == 0) more["calls"] = {{{"action", "eval.now"}, {"arguments", Json::object()}}};
      if (random() % 3 == 0)
        more["changes"] = {{{"name", "eval.batches"}, {"value", number}},
                           {{"name", "nccl.max_ctas"}, {"value", random() % 64}}};
      run.order(number++, more);
    }
    if (random() % 4 == 0)
      run.world.pause(left[random() % left.size()],
                      SteadyClock::now() + microseconds(random() % (tree ? 3000000 : 3000)));
    sleep_for(microseconds(random() % 600));
    int victim = survivor;
    while (victim == survivor || dead.contains(victim)) victim = left[random() % left.size()];
    dead.insert(victim);
    run.world.kill(victim);
  }
  run.wait_for_step(survivor, run.ranks[static_cast<std::size_t>(survivor)]->now() + 20);
  const auto before = static_cast<std::ptrdiff_t>(run.reports("call").size());
  run.order(number, {{"calls", {{{"action", "eval.now"}, {"arguments", Json::object()}}}}});
  const auto called = [&] {
    const auto calls = run.reports("call");
    return std::any_of(calls.begin() + before, calls.end(),
                       [](const Json& call) { return call["state"] == "done"; });
  };
  run.await(called);
  run.order(number + 1, {{"calls", {{{"action", "run.stop"}, {"arguments", Json::object()}}}}});
  run.join();
  expect_whole(run, dead, run.ranks[static_cast<std::size_t>(survivor)]->step);
  for (const Json& warning : run.reports("warn")) EXPECT_NE(warning.value("kind", ""), "disagree") << warning;
}

/// One run for each seed. The digest of its trace.
std::uint64_t storm_by_turns(std::uint64_t seed, bool tree = false) {
  const SimScheduler scheduler(seed);
  storm(seed, tree);
  if (::testing::Test::HasFailure()) show_trace();
  return scheduler.digest();
}

/// Repeated-fault tests: fewer under a sanitizer (one for threads finds nothing where they take turns), more
/// with scripts/test --full.
std::uint64_t seeds(std::uint64_t usual) {
#if defined(__SANITIZE_THREAD__)
  usual /= 20;
#elif defined(__SANITIZE_ADDRESS__)
  usual /= 10;
#endif
  return std::getenv("FOOTPLATE_FULL") != nullptr ? 10 * usual : usual;
}

TEST(RecoveryTest, OrdersAndDeathsAtRandomMoments) {
  if (const char* only = std::getenv("FOOTPLATE_SEED")) {
    storm_by_turns(std::strtoull(only, nullptr, 10));
    return;
  }
  for (std::uint64_t seed = 1; seed <= seeds(2000) && !::testing::Test::HasFailure(); ++seed)
    storm_by_turns(seed);
}

TEST(RecoveryTest, OrdersAndDeathsAtRandomMomentsInATree) {
  if (const char* only = std::getenv("FOOTPLATE_SEED")) {
    storm_by_turns(std::strtoull(only, nullptr, 10), /*tree=*/true);
    return;
  }
  for (std::uint64_t seed = 1; seed <= seeds(400) && !::testing::Test::HasFailure(); ++seed)
    storm_by_turns(seed, /*tree=*/true);
}

TEST(RecoveryTest, TheSameSeedIsTheSameRun) {
  std::set<std::uint64_t> digests;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    const std::uint64_t digest = storm_by_turns(seed);
    EXPECT_EQ(storm_by_turns(seed), digest) << "seed " << seed;
    EXPECT_TRUE(digests.insert(digest).second) << "seed " << seed << " is like another one";
  }
}

/// What only threads that run at the same time can do to each other.
TEST(RecoveryTest, OrdersAndDeathsAtRandomMomentsInRealTime) {
#ifdef __SANITIZE_THREAD__
  const std::uint64_t usual = 4000;
#else
  const std::uint64_t usual = 200;
#endif
  for (std::uint64_t seed = 1; seed <= seeds(usual) && !::testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE("in real time, seed " + std::to_string(seed));
    storm(seed);
  }
}

/// Again and again, until all have ended: an order that a rank 0 hadn't passed on is lost with it.
void pause_and_resume(RecoveryRun& run) {
  constexpr int kLooks = 100;
  std::int64_t number = 5;
  const auto call = [&](const char* action) {
    run.order(number++, {{"calls", {{{"action", action}, {"arguments", Json::object()}}}}});
  };
  call("run.pause");
  run.await([&, looks = 0]() mutable {
    if (looks++ % kLooks == 0) call("run.resume");
    return std::ranges::all_of(run.ranks, [](const auto& rank) { return rank->ended(); });
  });
}

/// A rank that dies there, amid orders with calls; the others end as if it had never been. With checkpoints
/// it takes a share of the state with it.
void die(const SimOptions::Death& death, std::uint64_t seed, Checkpoints* checkpoints = nullptr) {
  constexpr std::int64_t kSteps = 150;
  const SimScheduler scheduler(seed);
  SimOptions options{.max_delay = microseconds(50), .max_lateness = microseconds(20)};
  options.deaths = {death};
  RecoveryRun run(3, options, kSteps, {}, {}, checkpoints);
  for (std::int64_t i = 1; i <= 4; ++i) {
    run.order(i, {{"calls", {{{"action", "eval.now"}, {"arguments", Json::object()}}}}});
    run.wait_for_step(2, 20 * i);
  }
  if (checkpoints != nullptr) pause_and_resume(run);
  run.join();
  std::set<int> dead;
  for (int rank = 0; rank < 3; ++rank)
    if (run.world.is_dead(rank)) dead.insert(rank);
  const auto ended_by_it = [](const auto& rank) {
    return rank->given_up.find("the run was ending") != std::string::npos;
  };
  if (checkpoints != nullptr && std::ranges::any_of(run.ranks, ended_by_it)) return;
  expect_whole(run, dead, kSteps, checkpoints != nullptr);
  for (const Json& warning : run.reports("warn")) EXPECT_NE(warning.value("kind", ""), "disagree") << warning;
  if (::testing::Test::HasFailure()) show_trace();
}

TEST(RecoveryTest, ARankDiesAtAnyOfItsMessagesOrCollectives) {
  for (const int rank : {0, 1})
    for (std::uint64_t number = 1; number <= seeds(60) && !::testing::Test::HasFailure(); ++number) {
      SCOPED_TRACE("rank " + std::to_string(rank) + ", number " + std::to_string(number));
      die({.rank = rank, .message = number}, number);
      die({.rank = rank, .collective = number}, number);
    }
}

/// The steps since the checkpoint are made again, and what anybody has applied of orders is in force on all.
TEST(RecoveryTest, ARankDiesWithItsShareAndTheOthersGoBack) {
  for (const int rank : {0, 1})
    for (std::uint64_t number = 1; number <= seeds(60) && !::testing::Test::HasFailure(); ++number) {
      SCOPED_TRACE("rank " + std::to_string(rank) + ", number " + std::to_string(number));
      Checkpoints of_messages, of_collectives;
      die({.rank = rank, .message = number}, number, &of_messages);
      die({.rank = rank, .collective = number}, number, &of_collectives);
    }
}

// --- the decision alone ---

message::Standing standing(std::int64_t step, const Json& more = Json::object()) {
  Json json = {{"generation", 2}, {"step", step},     {"paused", false}, {"finished", false}, {"save", false},
               {"tag", ""},       {"commits", 3},     {"begun", 0},      {"reached", step},   {"applied", 0},
               {"sequence", 40},  {"commit", Json()}, {"ticket", 7},     {"order", 9},        {"share", 0},
               {"copied", 0},     {"shares", 1},      {"shared", false}};
  json.update(more);
  json["t"] = "standing";
  return std::get<message::Standing>(testing::to_rank_zero(json));
}

NewestCheckpoint at_step(std::int64_t step) {
  return [step](std::int64_t at_most) {
    EXPECT_LE(step, at_most);
    return CheckpointAt{"step-" + std::to_string(step), step};
  };
}

Result<CheckpointAt> none(std::int64_t /*at_most*/) {
  return fail(ErrorKind::failed, "there is no checkpoint yet");
}

TEST(RecoveryDecision, GoesOnFromWhoeverIsAhead) {
  Recovery recovery(3, 2);
  recovery.add(0, standing(11));
  recovery.add(1, standing(12, {{"sequence", 44}, {"paused", true}, {"save", true}}));  // a periodic one
  EXPECT_FALSE(recovery.verdict(none));
  recovery.add(2, standing(99, {{"generation", 1}}));
  EXPECT_FALSE(recovery.verdict(none)) << "of the world before";
  recovery.add(2, standing(12, {{"paused", true}, {"save", true}, {"tag", "kept"}}));
  const auto verdict = recovery.verdict(none);
  ASSERT_TRUE(verdict);
  EXPECT_EQ(verdict->step, 12);
  EXPECT_EQ(verdict->source, 1);
  EXPECT_EQ(verdict->behind, std::vector{0});
  EXPECT_EQ(verdict->sequence, 44U);
  EXPECT_EQ(verdict->paused, true);
  EXPECT_EQ(verdict->save, true);
  EXPECT_EQ(verdict->tag, "kept");
}

TEST(RecoveryDecision, GoesOnFromNoRankThatIsKnownToDiffer) {
  Recovery recovery(3, 2, {0, 1});
  recovery.add(0, standing(12));
  recovery.add(1, standing(12));
  recovery.add(2, standing(12));
  EXPECT_EQ(recovery.verdict(none)->source, 2);
  recovery.add(2, standing(11));
  EXPECT_EQ(recovery.verdict(none)->source, 0) << "nobody else is as far";
}

/// One has found too little memory for the step, and the loss has kept the other from it.
TEST(RecoveryDecision, APauseThatOneRankAloneHasIsOver) {
  Recovery recovery(3, 2);
  recovery.add(0, standing(12, {{"paused", true}}));
  recovery.add(1, standing(12));
  recovery.add(2, standing(11, {{"paused", true}}));
  EXPECT_FALSE(recovery.verdict(none)->paused);
  recovery.add(1, standing(12, {{"applied", 1}, {"paused", true}}));
  EXPECT_TRUE(recovery.verdict(none)->paused) << "by an order that the others have yet to apply";
  recovery.add(1, standing(-1, {{"reached", 12}}));
  EXPECT_TRUE(recovery.verdict(none)->paused) << "it joins a run that is paused";
}

TEST(RecoveryDecision, WhatAnybodySawRefusedIsRefused) {
  Recovery recovery(2, 2);
  recovery.add(0, standing(12, {{"refused", 4}, {"refusal", "no"}}));
  recovery.add(1, standing(12, {{"refused", 3}, {"refusal", "before"}}));
  EXPECT_EQ(recovery.verdict(none)->refused, 4U);
  EXPECT_EQ(recovery.verdict(none)->refusal, "no");
}

TEST(RecoveryDecision, WhatAnybodySawCommittedIsCommitted) {
  Recovery recovery(2, 2);
  const Json commit = {{"ticket", 7}, {"order", Json::object()}, {"step", 30}, {"targeted", false}};
  recovery.add(0, standing(12, {{"commit", {{"ticket", 6}, {"withdraws", 3}}}}));
  recovery.add(1, standing(12, {{"commit", commit}, {"commits", 4}}));
  const auto verdict = recovery.verdict(none);
  ASSERT_TRUE(verdict);
  ASSERT_TRUE(verdict->commit);
  EXPECT_EQ(verdict->commit->ticket, 7U);
  EXPECT_EQ(verdict->commit->committed.step, 30);
  EXPECT_EQ(verdict->commits, 4U);
}

TEST(RecoveryDecision, EachShareOfShardedStateIsWithItsRankOrTheNextOne) {
  const auto left_of_four = [](const std::vector<int>& shares, int distance = 1) {
    Recovery recovery(static_cast<int>(shares.size()) + 1, 2);
    for (int rank = 0; rank < static_cast<int>(shares.size()); ++rank)
      recovery.add(rank,
                   standing(12, {{"share", shares[static_cast<std::size_t>(rank)]},
                                 {"copied", (shares[static_cast<std::size_t>(rank)] + 4 - distance) % 4},
                                 {"shares", 4}}));
    recovery.add(static_cast<int>(shares.size()), standing(-1));  // joins
    return recovery.verdict(none)->impossible;
  };
  for (const std::vector<int>& shares : {std::vector{0, 1, 2, 3}, {1, 2, 3}, {0, 2, 3}, {0, 2}, {1, 3}})
    EXPECT_EQ(left_of_four(shares), "") << ::testing::PrintToString(shares);
  EXPECT_EQ(left_of_four({0, 3}),
            "share 2 of 4 of the optimizer's state (optim.shard) was lost together with its copy on another "
            "rank (ckpt.redundancy), and there is no checkpoint yet");
  EXPECT_NE(left_of_four({1, 2}), "") << "the copy of the last share was with the first rank";
  EXPECT_NE(left_of_four({1}), "");
  EXPECT_EQ(left_of_four({0, 1}, 2), "") << "of two hosts one is lost";
  EXPECT_EQ(left_of_four({2, 3}, 2), "");
}

/// As the state was divided among fewer ranks another one was lost.
TEST(RecoveryDecision, SharesOfTwoDivisionsDontFitTogether) {
  const auto share = [](int number, int copied, int of) {
    return standing(12, {{"share", number}, {"copied", copied}, {"shares", of}});
  };
  const auto impossible = [](const std::vector<message::Standing>& all) {
    Recovery recovery(static_cast<int>(all.size()), 2);
    for (std::size_t rank = 0; rank < all.size(); ++rank) recovery.add(static_cast<int>(rank), all[rank]);
    return recovery.verdict(none)->impossible;
  };
  EXPECT_EQ(impossible({share(0, 3, 4), share(1, 0, 5), share(2, 1, 4)}), "")
      << "those of four are all there";
  EXPECT_EQ(impossible({share(1, 0, 5), share(2, 1, 4), share(3, 2, 4)}),
            "share 3 of 5 of the optimizer's state (optim.shard) was lost together with its copy on another "
            "rank (ckpt.redundancy), and there is no checkpoint yet");
  EXPECT_EQ(impossible({share(1, 0, 5), share(0, 0, 1)}), "") << "one has all of it";
}

/// Also a rank whose own state is whole.
TEST(RecoveryDecision, AllGoBackToACheckpointWhereAShareIsGone) {
  Recovery recovery(2, 2);
  recovery.add(0, standing(41, {{"share", 0}, {"copied", 0}, {"shares", 3}, {"reached", 41}}));
  recovery.add(1, standing(41, {{"share", 2},
                                {"copied", 2},
                                {"shares", 3},
                                {"reached", 41},
                                {"applied", 1},
                                {"paused", true},
                                {"save", true}}));
  const auto verdict = recovery.verdict(at_step(30));
  ASSERT_TRUE(verdict);
  EXPECT_EQ(verdict->impossible, "");
  EXPECT_EQ(verdict->checkpoint, "step-30");
  EXPECT_EQ(verdict->step, 30);
  EXPECT_EQ(verdict->left, 41);
  EXPECT_EQ(verdict->behind, (std::vector{0, 1}));
  EXPECT_TRUE(verdict->paused) << "an order that the other one has yet to apply";
  EXPECT_FALSE(verdict->save) << "a periodic one comes again";
  EXPECT_EQ(recovery.verdict(none)->impossible,
            "share 2 of 3 of the optimizer's state (optim.shard) was lost, and there is no checkpoint yet");
}

/// Some may have left, and nobody steers the others any more.
TEST(RecoveryDecision, NobodyGoesBackAtTheEnd) {
  Recovery recovery(1, 2);
  recovery.add(0, standing(41, {{"share", 0}, {"copied", 0}, {"shares", 2}, {"finished", true}}));
  EXPECT_EQ(recovery.verdict(at_step(30))->impossible,
            "share 2 of 2 of the optimizer's state (optim.shard) was lost, and the run was ending");
}

TEST(RecoveryDecision, AllGoBackWhereNobodysStateIsWhole) {
  Recovery recovery(2, 2);
  recovery.add(0, standing(-1, {{"reached", 35}, {"save", true}, {"tag", "kept"}}));
  recovery.add(1, standing(-1, {{"reached", 34}}));
  const auto verdict = recovery.verdict(at_step(30));
  EXPECT_EQ(verdict->checkpoint, "step-30");
  EXPECT_EQ(verdict->step, 30);
  EXPECT_EQ(verdict->left, 35);
  EXPECT_TRUE(verdict->save);
  EXPECT_EQ(recovery.verdict(none)->impossible,
            "no rank is left whose state is whole, and there is no checkpoint yet");
}

TEST(RecoveryDecision, IsImpossibleWhereNobodysStateIsWhole) {
  Recovery recovery(1, 2);
  recovery.add(0, standing(-1));
  const auto verdict = recovery.verdict(none);
  ASSERT_TRUE(verdict);
  EXPECT_NE(verdict->impossible, "");
}

}  // namespace
}  // namespace footplate
