// Ranks that die, on whole ranks over SimWorld: real control threads, gates and collectives, a training
// thread that adds up what all ranks reduce. Most take turns under a SimScheduler, where a seed is a run.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "runtime/comm/sim/scheduler.h"
#include "runtime/comm/sim/world.h"
#include "runtime/control/control.h"
#include "runtime/control/recovery.h"
#include "runtime/control/schema_table.h"
#include "runtime/threads/thread.h"

namespace footplate {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

/// The end of the scheduler's trace, or all of it where FOOTPLATE_SEED asks for one seed.
void show_trace() {
  const SimScheduler* scheduler = SimScheduler::current();
  if (scheduler == nullptr) return;
  constexpr std::size_t kShown = 60;
  const bool one = std::getenv("FOOTPLATE_SEED") != nullptr;
  std::cerr << scheduler->trace(one ? SimScheduler::kKept : kShown);
  if (!one) std::cerr << "FOOTPLATE_SEED with this seed repeats it, and shows all of it\n";
}

/// A rank that adds up. Its state is a chain over all steps: a step that is done twice, left out or done on
/// another state shows at the end.
class AddingRank final : public Steerable {
 public:
  struct Applied {
    std::int64_t step;
    std::int64_t batches;
    bool operator==(const Applied&) const = default;
  };

  AddingRank(SimWorld& world, int rank, ControlOptions options)
      : world_(world), origin_(rank), channel_(world.channel(rank)) {
    communicator_ = world.communicator(rank, ledger_, progress_);
    member_ = world.world(rank, *channel_);
    options.channel = channel_.get();
    options.world = member_.get();
    options.progress = &progress_;
    options.ledger = &ledger_;
    control_ = std::make_unique<Control>(std::move(options));
    control_->set_steerable(*this);
  }

  void start() {
    control_->start();
    thread_ = Thread("training", [this] {
      try {
        train();
      } catch (const std::runtime_error& error) {
        given_up = error.what();
      }
      control_->training_ended();
      ended_ = true;
    });
  }
  bool ended() const { return ended_; }
  void join() { thread_.join(); }
  void end() { control_->finish({{"code", 0}}); }
  Control& control() { return *control_; }
  std::int64_t now() const { return progress_.step(); }

  std::vector<Moved> settings_changed(const Settings& settings, std::int64_t step) override {
    applied.push_back({step, settings.integer("eval.batches")});
    if (Scheduler* scheduler = Scheduler::current())
      scheduler->note("rank " + std::to_string(origin_) + " applies " +
                      std::to_string(applied.back().batches) + " at step " + std::to_string(step));
    return {};
  }
  Result<void> prepare(const Order&, const Settings&) override { return {}; }
  Result<Json> call(const Call&, std::int64_t step) override {
    double one = 1;
    auto done = control_->gate().meet("a call", std::chrono::seconds(60));
    if (done) done = communicator_->all_reduce({&one, 1, DataType::float64}, ReduceOp::sum, "call")->wait();
    if (!done && done.error().kind == ErrorKind::lost) control_->gate().lost(StepGate::Interrupted::save);
    if (!done) return tl::unexpected(done.error());
    return Json{{"step", step}};
  }
  Result<void> rejoin(const Rejoin& rejoin) override {
    communicator_->rejoin(rejoin.generation, rejoin.sequence);
    worlds.emplace_back(rejoin.step, communicator_->world_size());
    if (rejoin.level) {
      double state[2] = {static_cast<double>(step), value};
      const auto sent =
          communicator_->broadcast({state, 2, DataType::float64}, rejoin.source, "level")->wait();
      if (!sent) return sent;
      step = static_cast<std::int64_t>(state[0]);
      value = state[1];
    }
    EXPECT_EQ(step, rejoin.step);
    saved_again += rejoin.save ? 1 : 0;
    return {};
  }

  std::int64_t step = 0;
  double value = 1;
  std::vector<Applied> applied;
  std::vector<std::pair<std::int64_t, int>> worlds;  ///< step and size after each loss
  int saved_again = 0;
  std::string given_up;
  Ending ending;

 private:
  void train() {
    StepGate& gate = control_->gate();
    while (gate.enter(step) == StepGate::Verdict::train) {
      world_.hold(origin_);
      // Every rank adds 1/world_size: the sum is the same whoever is left, up to rounding.
      double part = 1.0 / communicator_->world_size();
      const auto done =
          communicator_->all_reduce({&part, 1, DataType::float64}, ReduceOp::sum, "gradients")->wait();
      if (!done) {
        if (done.error().kind != ErrorKind::lost || !gate.lost(StepGate::Interrupted::work)) return;
        continue;
      }
      ++step;
      value = value * 0.999 + part * static_cast<double>(step % 7);
    }
    ending = gate.ending();
  }

  SimWorld& world_;
  int origin_;
  Ledger ledger_;
  Progress progress_;
  std::unique_ptr<MessageChannel> channel_;
  std::unique_ptr<Communicator> communicator_;
  std::unique_ptr<World> member_;
  std::unique_ptr<Control> control_;
  std::atomic<bool> ended_{false};
  Thread thread_;
};

/// A run of such ranks; rank 0 is whoever has become it.
class RecoveryRun {
 public:
  RecoveryRun(int ranks, SimOptions options, std::int64_t steps) : world(ranks, std::move(options)) {
    ControlOptions control;
    control.schema = runtime_schema();
    control.settings = Settings::defaults(control.schema);
    control.settings.set("train.steps", steps, "test");
    control.observer = [this](const std::string& topic, const Json& data) {
      std::lock_guard lock(mutex_);
      reports_.emplace_back(topic, data);
    };
    for (int rank = 0; rank < ranks; ++rank) {
      control.on_world = [this, rank](const Membership& members, bool) -> std::uint64_t {
        std::lock_guard lock(mutex_);
        if (members.rank == 0 && members.generation > led_) {  // one that died may still say so
          leader = rank;
          led_ = members.generation;
        }
        return 1;
      };
      this->ranks.push_back(std::make_unique<AddingRank>(world, rank, control));
    }
    for (auto& rank : this->ranks) rank->start();
  }
  ~RecoveryRun() {
    for (auto& rank : ranks) rank->end();
  }

  void order(std::int64_t number, const Json& more = Json::object()) {
    Json order = {{"session", "s1"},
                  {"user", "ann"},
                  {"changes", {{{"name", "eval.batches"}, {"value", number}}}},
                  {"calls", Json::array()}};
    order.update(more);
    ranks[static_cast<std::size_t>(leader.load())]->control().take(
        {{"type", "order"}, {"ref", std::to_string(number)}, {"order", order}});
  }

  void wait_for_step(int rank, std::int64_t step) {
    await([&] { return ranks[static_cast<std::size_t>(rank)]->now() >= step; });
  }
  /// Ends the whole test program where it never comes: ranks that hang can't be joined.
  void await(const std::function<bool()>& come) {
    const auto deadline = SteadyClock::now() + std::chrono::seconds(20);
    while (!come()) {
      look_again();
      if (SteadyClock::now() < deadline) continue;
      for (std::size_t rank = 0; rank < ranks.size(); ++rank)
        std::cerr << "rank " << rank << (world.is_dead(static_cast<int>(rank)) ? " (dead)" : "")
                  << " at step " << ranks[rank]->now() << " given up: " << ranks[rank]->given_up << "\n  "
                  << ranks[rank]->control().status() << "\n";
      for (const auto& [topic, data] : reports_) std::cerr << topic << " " << data << "\n";
      show_trace();
      std::abort();
    }
  }
  void join() {
    await([&] {
      return std::all_of(ranks.begin(), ranks.end(), [](const auto& rank) { return rank->ended(); });
    });
    for (auto& rank : ranks) rank->join();
  }
  std::vector<Json> reports(const std::string& topic) {
    std::lock_guard lock(mutex_);
    std::vector<Json> found;
    for (const auto& [at, data] : reports_)
      if (at == topic) found.push_back(data);
    return found;
  }

  SimWorld world;
  std::vector<std::unique_ptr<AddingRank>> ranks;
  std::atomic<int> leader{0};

 private:
  std::mutex mutex_;
  std::uint32_t led_ = 0;  ///< generation of the leader
  std::vector<std::pair<std::string, Json>> reports_;
};

double expected_value(std::int64_t steps) {
  double value = 1;
  for (std::int64_t step = 1; step <= steps; ++step) value = value * 0.999 + static_cast<double>(step % 7);
  return value;
}

/// What has to hold of any run whose `dead` ranks were killed.
void expect_whole(RecoveryRun& run, const std::set<int>& dead, std::int64_t steps) {
  const AddingRank* first = nullptr;
  for (std::size_t rank = 0; rank < run.ranks.size(); ++rank) {
    if (dead.contains(static_cast<int>(rank))) continue;
    const AddingRank& one = *run.ranks[rank];
    EXPECT_EQ(one.given_up, "") << "rank " << rank;
    EXPECT_EQ(one.step, steps) << "rank " << rank;
    EXPECT_NEAR(one.value, expected_value(steps), 1e-6) << "rank " << rank;
    if (first == nullptr) {
      first = &one;
      continue;
    }
    EXPECT_EQ(one.value, first->value) << "rank " << rank << ": bit for bit";
    EXPECT_EQ(one.applied, first->applied) << "rank " << rank;
    EXPECT_EQ(one.saved_again, first->saved_again) << "rank " << rank;
  }
  ASSERT_NE(first, nullptr);
  std::set<std::int64_t> seen;
  for (const auto& applied : first->applied)
    EXPECT_TRUE(seen.insert(applied.batches).second) << "order " << applied.batches << " twice";
}

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
void storm(std::uint64_t seed) {
  std::mt19937_64 random(seed);
  const int ranks = 2 + static_cast<int>(random() % 3);
  SimOptions options;
  options.seed = seed;
  options.max_delay = microseconds(random() % 100);
  options.max_lateness = microseconds(random() % 60);
  RecoveryRun run(ranks, options, 1000000000);
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
      run.order(number++, more);
    }
    if (random() % 4 == 0)
      run.world.pause(left[random() % left.size()], SteadyClock::now() + microseconds(random() % 3000));
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
}

/// One run for each seed. The digest of its trace.
std::uint64_t storm_by_turns(std::uint64_t seed) {
  const SimScheduler scheduler(seed);
  storm(seed);
  if (testing::Test::HasFailure()) show_trace();
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
  for (std::uint64_t seed = 1; seed <= seeds(2000) && !testing::Test::HasFailure(); ++seed)
    storm_by_turns(seed);
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
  for (std::uint64_t seed = 1; seed <= seeds(usual) && !testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE("in real time, seed " + std::to_string(seed));
    storm(seed);
  }
}

/// A rank that dies there, amid orders with calls; the others end as if it had never been.
void die(const SimOptions::Death& death, std::uint64_t seed) {
  constexpr std::int64_t kSteps = 150;
  const SimScheduler scheduler(seed);
  SimOptions options{.max_delay = microseconds(50), .max_lateness = microseconds(20)};
  options.deaths = {death};
  RecoveryRun run(3, options, kSteps);
  for (std::int64_t i = 1; i <= 4; ++i) {
    run.order(i, {{"calls", {{{"action", "eval.now"}, {"arguments", Json::object()}}}}});
    run.wait_for_step(2, 20 * i);
  }
  run.join();
  std::set<int> dead;
  for (int rank = 0; rank < 3; ++rank)
    if (run.world.is_dead(rank)) dead.insert(rank);
  expect_whole(run, dead, kSteps);
  if (testing::Test::HasFailure()) show_trace();
}

TEST(RecoveryTest, ARankDiesAtAnyOfItsMessagesOrCollectives) {
  for (const int rank : {0, 1})
    for (std::uint64_t number = 1; number <= seeds(60) && !testing::Test::HasFailure(); ++number) {
      SCOPED_TRACE("rank " + std::to_string(rank) + ", number " + std::to_string(number));
      die({.rank = rank, .message = number}, number);
      die({.rank = rank, .collective = number}, number);
    }
}

// --- the decision alone ---

Json standing(std::int64_t step, const Json& more = Json::object()) {
  Json json = {{"generation", 2},  {"step", step}, {"paused", false}, {"finished", false},
               {"save", false},    {"commits", 3}, {"begun", 0},      {"sequence", 40},
               {"commit", Json()}, {"ticket", 7},  {"order", 9}};
  json.update(more);
  return json;
}

TEST(RecoveryDecision, GoesOnFromWhoeverIsAhead) {
  Recovery recovery(3, 2);
  recovery.add(0, standing(11));
  recovery.add(1, standing(12, {{"sequence", 44}, {"paused", true}, {"save", true}}));
  EXPECT_FALSE(recovery.verdict());
  recovery.add(2, standing(99, {{"generation", 1}}));
  EXPECT_FALSE(recovery.verdict()) << "of the world before";
  recovery.add(2, standing(12));
  const auto verdict = recovery.verdict();
  ASSERT_TRUE(verdict);
  EXPECT_EQ((*verdict)["step"], 12);
  EXPECT_EQ((*verdict)["source"], 1);
  EXPECT_EQ((*verdict)["behind"], Json::array({0}));
  EXPECT_EQ((*verdict)["sequence"], 44);
  EXPECT_EQ((*verdict)["paused"], true);
  EXPECT_EQ((*verdict)["save"], true);
}

TEST(RecoveryDecision, WhatAnybodySawCommittedIsCommitted) {
  Recovery recovery(2, 2);
  const Json commit = {{"ticket", 7}, {"order", Json::object()}, {"step", 30}, {"targeted", false}};
  recovery.add(0, standing(12, {{"commit", {{"ticket", 6}, {"withdraws", 3}}}}));
  recovery.add(1, standing(12, {{"commit", commit}, {"commits", 4}}));
  const auto verdict = recovery.verdict();
  ASSERT_TRUE(verdict);
  EXPECT_EQ((*verdict)["commit"], commit);
  EXPECT_EQ((*verdict)["commits"], 4);
}

TEST(RecoveryDecision, IsImpossibleWhereNobodysStateIsWhole) {
  Recovery recovery(1, 2);
  recovery.add(0, standing(-1));
  const auto verdict = recovery.verdict();
  ASSERT_TRUE(verdict);
  EXPECT_TRUE(verdict->contains("impossible"));
}

}  // namespace
}  // namespace footplate
