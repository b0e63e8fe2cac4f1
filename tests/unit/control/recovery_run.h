#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "runtime/base/thread.h"
#include "runtime/comm/sim/sim_scheduler.h"
#include "runtime/comm/sim/sim_world.h"
#include "runtime/control/control.h"
#include "runtime/control/control_channel.h"
#include "runtime/schema/schema_table.h"
#include "tests/unit/control/sim_run.h"

// Whole ranks over SimWorld: real control threads, gates and collectives, a training thread that adds up what
// all ranks reduce.
namespace footplate::testing {

/// The end of the scheduler's trace, or all of it where FOOTPLATE_SEED asks for one seed.
inline void show_trace() {
  const SimScheduler* scheduler = SimScheduler::current();
  if (scheduler == nullptr) return;
  constexpr std::size_t kShown = 60;
  const bool one = std::getenv("FOOTPLATE_SEED") != nullptr;
  std::cerr << scheduler->trace(one ? SimScheduler::kKept : kShown);
  if (!one) std::cerr << "FOOTPLATE_SEED with this seed repeats it, and shows all of it\n";
}

/// Where ranks keep the sum of each tenth step. With one, each has a share of its state, and nobody a copy.
class Checkpoints {
 public:
  static constexpr std::int64_t kEvery = 10;
  void keep(std::int64_t step, double value) {
    const std::lock_guard lock(mutex_);
    kept_[step] = value;
  }
  double value_of(std::int64_t step) const {
    const std::lock_guard lock(mutex_);
    return kept_.at(step);
  }
  CheckpointAt newest(std::int64_t at_most) const {
    const std::lock_guard lock(mutex_);
    return CheckpointAt{"kept", std::prev(kept_.upper_bound(at_most))->first};
  }

 private:
  mutable std::mutex mutex_;
  std::map<std::int64_t, double> kept_{{0, 1.0}};
};

/// A rank that adds up. Its state is a chain over all steps: a step that is done twice, left out or done on
/// another state shows at the end.
class AddingRank final : public Steerable {
 public:
  struct Applied {
    std::int64_t step;
    std::int64_t batches;
    bool operator==(const Applied&) const = default;
  };

  /// Training thread, before it comes to a step's reduction (of a call: step -1).
  using Late = std::function<void(int rank, std::int64_t step)>;

  AddingRank(SimWorld& world, int rank, ControlOptions options, Late late = {},
             Checkpoints* checkpoints = nullptr)
      : world_(world),
        origin_(rank),
        late_(std::move(late)),
        checkpoints_(checkpoints),
        channel_(make_control_channel(world.channel(rank), options.settings)) {
    communicator_ = world.communicator(rank, ledger_, progress_);
    member_ = world.world(rank, *channel_);
    divide();
    if (checkpoints != nullptr)
      options.newest_checkpoint = [checkpoints](std::int64_t at_most) {
        return checkpoints->newest(at_most);
      };
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
  void end() { control_->finish(ended_well()); }
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
  /// Every third number can't be had, as one rank finds out; then all go back, together.
  Result<std::optional<double>> renew(const Settings& after, Renewal, std::int64_t) override {
    double failed = after.integer("nccl.max_ctas") % 3 == 0 && communicator_->rank() == 0 ? 1 : 0;
    const auto agreed = [&] {
      return communicator_->all_reduce({&failed, 1, DataType::float64}, ReduceOp::max, "renewal")->wait();
    };
    if (auto made = agreed(); !made) return tl::unexpected(made.error());
    if (failed != 0)
      if (auto back = agreed(); !back) return tl::unexpected(back.error());
    if (deaf) {
      std::exchange(deaf, nullptr)();
      return fail(ErrorKind::lost, "it didn't hear what became of it");
    }
    if (failed == 0) return std::optional<double>(0.5);
    return fail(ErrorKind::refused, "rank 0: it can't be had");
  }
  Result<CallResult> call(const Call& call, std::int64_t step) override {
    double one = 1;
    progress_.enter(Phase::evaluation);
    auto done = control_->gate().meet("a call", std::chrono::seconds(60));
    if (late_) late_(origin_, -1);
    if (done) done = communicator_->all_reduce({&one, 1, DataType::float64}, ReduceOp::sum, "call")->wait();
    if (!done && done.error().kind == ErrorKind::lost)
      control_->gate().lost(StepGate::Interrupted::save, "kept");
    if (const std::string why = control_->gate().interruption(); !done && !why.empty())
      return fail(ErrorKind::timed_out, why);
    if (!done) return tl::unexpected(done.error());
    if (deaf) {
      std::exchange(deaf, nullptr)();
      return fail(ErrorKind::lost, "it didn't hear what became of it");
    }
    if (call.action == "ckpt.load") {
      LoadTarget target;
      target.step = step;
      return target;
    }
    return DoneAtStep{step};
  }
  Result<void> rejoin(const Rejoin& rejoin) override {
    if (auto there = communicator_->rejoin(rejoin.generation, rejoin.sequence); !there) return there;
    worlds.emplace_back(rejoin.step, communicator_->world_size());
    divide();
    if (!rejoin.checkpoint.empty()) {
      double one = 1;  // all have loaded it, as far as this rank hears
      const auto all = communicator_->all_reduce({&one, 1, DataType::float64}, ReduceOp::sum, "load")->wait();
      if (!all) return all;
      EXPECT_LE(rejoin.step, rejoin.left);
      step = rejoin.step;
      value = checkpoints_->value_of(step);
    } else if (rejoin.level) {
      double state[2] = {static_cast<double>(step), value};
      const auto sent =
          communicator_->broadcast({state, 2, DataType::float64}, rejoin.source, "level")->wait();
      if (!sent) return sent;
      step = static_cast<std::int64_t>(state[0]);
      value = state[1];
    }
    EXPECT_EQ(step, rejoin.step);
    EXPECT_EQ(rejoin.tag, rejoin.save ? "kept" : "");
    return {};
  }
  HeldShare held_share() const override { return share_; }
  Result<void> take_up(const Rejoin& rejoin) override {
    double one = 1;
    const auto all =
        communicator_->all_reduce({&one, 1, DataType::float64}, ReduceOp::sum, "what was left")->wait();
    if (!all) return all;
    control_->gate().all_are_level();
    saved_again += rejoin.save ? 1 : 0;
    return {};
  }

  std::function<void()> deaf;  ///< at the next renew() or call(), which this rank doesn't hear the end of
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
      progress_.enter(Phase::reduce);
      if (late_) late_(origin_, step);
      // Every rank adds 1/world_size: the sum is the same whoever is left, up to rounding. And all have the
      // same settings.
      const double ranks = communicator_->world_size();
      const auto batches = static_cast<double>(gate.settings().integer("eval.batches"));
      double sums[2] = {1.0 / ranks, batches};
      const auto done =
          communicator_->all_reduce({sums, 2, DataType::float64}, ReduceOp::sum, "gradients")->wait();
      if (!done) {
        if (done.error().kind != ErrorKind::lost || !gate.lost(StepGate::Interrupted::work, "")) return;
        continue;
      }
      EXPECT_EQ(sums[1], batches * ranks) << "step " << step << ": settings of the ranks differ";
      ++step;
      value = value * 0.999 + sums[0] * static_cast<double>(step % 7);
      if (checkpoints_ != nullptr && communicator_->rank() == 0 && step % Checkpoints::kEvery == 0)
        checkpoints_->keep(step, value);
    }
    ending = gate.ending();
  }

  void divide() {
    const int rank = communicator_->rank(), ranks = communicator_->world_size();
    if (checkpoints_ != nullptr) share_ = {rank, rank, ranks, ranks > 1};
  }

  SimWorld& world_;
  int origin_;
  Late late_;
  Checkpoints* checkpoints_;
  HeldShare share_;
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
  using Values = std::vector<std::pair<std::string, Value>>;
  RecoveryRun(int ranks, SimOptions options, std::int64_t steps, const Values& settings = {},
              const AddingRank::Late& late = {}, Checkpoints* checkpoints = nullptr)
      : world(ranks, std::move(options)) {
    ControlOptions control;
    control.schema = runtime_schema();
    control.settings = Settings::defaults(control.schema);
    control.settings.set("train.steps", steps, "test");
    for (const auto& [name, value] : settings) control.settings.set(name, value, "test");
    control.observer = [this](const Observed& observed) {
      std::lock_guard lock(mutex_);
      reports_.push_back(told(observed));
    };
    for (int rank = 0; rank < ranks; ++rank) {
      control.on_world = [this, rank](const Membership& members, bool) {
        std::lock_guard lock(mutex_);
        if (members.rank == 0 && members.generation > led_) {  // one that died may still say so
          leader = rank;
          led_ = members.generation;
        }
        return recorded;
      };
      this->ranks.push_back(std::make_unique<AddingRank>(world, rank, control, late, checkpoints));
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
    ranks[static_cast<std::size_t>(leader.load())]->control().take(submitted(std::to_string(number), order));
  }

  void wait_for_step(int rank, std::int64_t step) {
    await([&] { return ranks[static_cast<std::size_t>(rank)]->now() >= step; });
  }
  /// Ends the whole test program where it never comes: ranks that hang can't be joined.
  void await(const std::function<bool()>& come, SteadyClock::duration every = {}) {
    const auto deadline = SteadyClock::now() + std::chrono::seconds(Scheduler::current() ? 1000 : 20);
    while (!come()) {
      if (every.count() > 0)
        sleep_for(every);
      else
        look_again();
      if (SteadyClock::now() < deadline) continue;
      for (std::size_t rank = 0; rank < ranks.size(); ++rank)
        std::cerr << "rank " << rank << (world.is_dead(static_cast<int>(rank)) ? " (dead)" : "")
                  << " at step " << ranks[rank]->now() << " given up: " << ranks[rank]->given_up << "\n  "
                  << to_json(ranks[rank]->control().status()) << "\n";
      for (const auto& [topic, data] : reports_) std::cerr << topic << " " << data << "\n";
      show_trace();
      std::abort();
    }
  }
  void join(SteadyClock::duration every = {}) {
    await(
        [&] {
          return std::all_of(ranks.begin(), ranks.end(), [](const auto& rank) { return rank->ended(); });
        },
        every);
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
  std::set<std::uint64_t> recorded;  ///< the orders that the journal has, for a new rank 0

 private:
  std::mutex mutex_;
  std::uint32_t led_ = 0;  ///< generation of the leader
  std::vector<std::pair<std::string, Json>> reports_;
};

inline double expected_value(std::int64_t steps) {
  double value = 1;
  for (std::int64_t step = 1; step <= steps; ++step) value = value * 0.999 + static_cast<double>(step % 7);
  return value;
}

/// The numbers of the orders, as they were applied. Where ranks went back to a checkpoint, some may have
/// applied one before, and the others after it.
inline std::vector<std::int64_t> numbers_of(const std::vector<AddingRank::Applied>& applied) {
  std::vector<std::int64_t> numbers;
  for (const auto& one : applied) numbers.push_back(one.batches);
  return numbers;
}

/// What has to hold of any run whose `dead` ranks were killed.
inline void expect_whole(RecoveryRun& run, const std::set<int>& dead, std::int64_t steps,
                         bool goes_back = false) {
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
    EXPECT_EQ(numbers_of(one.applied), numbers_of(first->applied)) << "rank " << rank;
    if (!goes_back) {
      EXPECT_EQ(one.applied, first->applied) << "rank " << rank;
    }
    // Another loss on the way to all ranks, and only some have been told to save again before it.
    EXPECT_EQ(one.saved_again > 0, first->saved_again > 0) << "rank " << rank;
  }
  ASSERT_NE(first, nullptr);
  std::set<std::int64_t> seen;
  for (const auto& applied : first->applied)
    EXPECT_TRUE(seen.insert(applied.batches).second) << "order " << applied.batches << " twice";
}

}  // namespace footplate::testing
