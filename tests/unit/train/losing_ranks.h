#pragma once

#include <gtest/gtest.h>

#include <condition_variable>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "runtime/comm/message_channel.h"
#include "runtime/comm/sim/sim_world.h"
#include "runtime/schema/schema_table.h"
#include "tests/unit/train/fixtures.h"

// Ranks of a simulated world that are lost in a collective of their training, and how the others go on.
namespace footplate::testing {

/// One that is over.
class Over final : public Work {
 public:
  explicit Over(Result<void> outcome) : outcome_(std::move(outcome)) {}
  bool done() const override { return true; }
  Result<void> wait(Clock::time_point) override { return outcome_; }

 private:
  Result<void> outcome_;
};

/// A rank is lost: in the operation of that name in that step.
struct Loss {
  int rank = 0;  ///< its number at the start
  std::int64_t step = 0;
  std::string operation;
  /// On these ranks, by their numbers at the start, the operation has succeeded, and the lost one has done
  /// its part of it; on the others it fails. Nothing: it is lost before it.
  std::optional<std::set<int>> succeeds_on = {};
  int before = 0;  ///< so many operations of that name in that step go well
};

class LosingCommunicator final : public Communicator {
 public:
  LosingCommunicator(Communicator& inner, SimWorld& world, int origin, std::vector<Loss> losses)
      : inner_(inner), world_(world), origin_(origin), losses_(std::move(losses)) {}
  void begin_step(std::int64_t step) { step_ = step; }

  int rank() const override { return inner_.rank(); }
  int world_size() const override { return inner_.world_size(); }
  void set_chunk_elements(std::int64_t elements) override { inner_.set_chunk_elements(elements); }
  std::unique_ptr<Work> all_reduce(Buffer buffer, ReduceOp op, const char* name) override {
    return with_losses(name, buffer, [&] { return inner_.all_reduce(buffer, op, name); });
  }
  std::unique_ptr<Work> broadcast(Buffer buffer, int root, const char* name) override {
    return with_losses(name, buffer, [&] { return inner_.broadcast(buffer, root, name); });
  }
  std::unique_ptr<Work> all_gather(Buffer send, Buffer receive, const char* name) override {
    return with_losses(name, receive, [&] { return inner_.all_gather(send, receive, name); });
  }
  std::unique_ptr<Work> barrier(const char* name) override { return inner_.barrier(name); }
  std::unique_ptr<Work> reduce_scatter(Buffer buffer, ReduceOp op, const char* name) override {
    return with_losses(name, buffer, [&] { return inner_.reduce_scatter(buffer, op, name); });
  }
  std::unique_ptr<Work> all_gather_shares(Buffer buffer, const char* name) override {
    return with_losses(name, buffer, [&] { return inner_.all_gather_shares(buffer, name); });
  }
  std::unique_ptr<Work> pass_shares(Buffer buffer, int distance, const char* name) override {
    return with_losses("pass", buffer, [&] { return inner_.pass_shares(buffer, distance, name); });
  }
  Result<void> rejoin(std::uint32_t generation, std::uint64_t sequence) override {
    return inner_.rejoin(generation, sequence);
  }

 private:
  template <class Operation>
  std::unique_ptr<Work> with_losses(const std::string& name, const Buffer& buffer,
                                    const Operation& operation) {
    for (auto loss = losses_.begin(); loss != losses_.end(); ++loss) {
      if (loss->step != step_ || loss->operation != name || loss->before-- > 0) continue;
      const Loss now = *loss;
      losses_.erase(loss);
      if (now.succeeds_on) return partly(now, buffer, operation);
      if (now.rank == origin_) return lost();
      break;
    }
    return operation();
  }
  template <class Operation>
  std::unique_ptr<Work> partly(const Loss& loss, const Buffer& buffer, const Operation& operation) {
    const auto* first = static_cast<const char*>(buffer.data);
    const std::string before(first, static_cast<std::size_t>(buffer.elements) * size_of(buffer.type));
    EXPECT_TRUE(operation()->wait());
    if (loss.rank == origin_) return lost();
    if (loss.succeeds_on->contains(origin_)) return std::make_unique<Over>(Result<void>());
    std::memcpy(buffer.data, before.data(), before.size());
    return std::make_unique<Over>(fail(ErrorKind::lost, "a rank is lost"));
  }
  std::unique_ptr<Work> lost() {
    world_.kill(origin_);
    return std::make_unique<Over>(fail(ErrorKind::lost, "this rank is lost"));
  }

  Communicator& inner_;
  SimWorld& world_;
  int origin_;
  std::vector<Loss> losses_;
  std::int64_t step_ = -1;
};

/// Where those who are left agree how to go on, as Recovery does. `checkpoint`: where they go back to, each
/// time, as where nobody has a copy of what is lost.
class MeetingPoint {
 public:
  explicit MeetingPoint(std::optional<std::int64_t> checkpoint) : checkpoint_(checkpoint) {}

  struct Standing {
    std::int64_t step = 0;
    bool whole = true;
  };
  Rejoin meet(const Membership& members, const Standing& mine) {
    std::unique_lock lock(mutex_);
    auto& all = standing_[members.generation];
    all[members.rank] = mine;
    changed_.notify_all();
    EXPECT_TRUE(changed_.wait_for(lock, std::chrono::seconds(60),
                                  [&] { return all.size() == members.origins.size(); }));
    Rejoin rejoin;
    rejoin.step = -1;
    for (const auto& [rank, standing] : all)
      if (standing.whole && standing.step > rejoin.step) {
        rejoin.step = standing.step;
        rejoin.source = rank;
      }
    const auto is_behind = [&](const Standing& one) { return !one.whole || one.step != rejoin.step; };
    for (const auto& [rank, standing] : all) rejoin.level = rejoin.level || is_behind(standing);
    rejoin.behind = is_behind(mine);
    rejoin.whole = mine.whole;
    if (checkpoint_) {
      rejoin.checkpoint = "whole";
      rejoin.left = std::exchange(rejoin.step, *checkpoint_);
      rejoin.behind = rejoin.level = true;
    }
    rejoin.shared = true;
    rejoin.generation = members.generation;
    rejoin.sequence = 1000 * members.generation;
    return rejoin;
  }

 private:
  const std::optional<std::int64_t> checkpoint_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::uint32_t, std::map<int, Standing>> standing_;
};

inline Settings with(Settings settings, const std::vector<std::string>& assignments) {
  for (const std::string& text : assignments) {
    const std::string name = text.substr(0, text.find('='));
    settings.set(name, *runtime_schema().check_text(name, text.substr(text.find('=') + 1)), "test");
  }
  return settings;
}

/// Lets those who are left go on.
class RecoveringGate final : public FreeGate {
 public:
  RecoveringGate(const Settings& settings, Trainer& trainer, MeetingPoint& point, World& world,
                 std::function<bool()> is_dead, std::int64_t until)
      : FreeGate(settings, trainer),
        trainer_(trainer),
        point_(point),
        world_(world),
        is_dead_(std::move(is_dead)),
        until_(until) {}

  bool lost(Interrupted what, const std::string& /*tag*/) override {
    whole_ = whole_ && what != Interrupted::state;
    lost_ = !is_dead_();
    return lost_;
  }
  Verdict enter(std::int64_t step) override {
    do {
      while (lost_) step = recover(step);
    } while (!apply(step));
    return step < until_ ? FreeGate::enter(step) : Verdict::end;
  }
  std::vector<std::int64_t> recovered_at;
  std::map<std::int64_t, std::vector<std::string>> changes;  ///< orders: assignments by step
  std::function<void(std::int64_t step)> before_change;
  std::vector<std::string> refused;  ///< why

 private:
  std::int64_t recover(std::int64_t step) {
    lost_ = false;
    if (is_dead_()) return step;  // its next step fails
    EXPECT_TRUE(world_.rebuild());
    const Rejoin now = point_.meet(world_.members(), {whole_ ? step : -1, whole_});
    whole_ = whole_ && !now.behind;
    if (auto there = trainer_.rejoin(now); !there) {
      EXPECT_EQ(there.error().kind, ErrorKind::lost) << there.error().message;
      lost_ = true;
      return step;
    }
    whole_ = true;
    recovered_at.push_back(now.step);
    EXPECT_TRUE(trainer_.take_up(now));
    return now.step;
  }
  /// False: a rank was lost.
  bool apply(std::int64_t step) {
    const auto due = changes.find(step);
    if (due == changes.end()) return true;
    const Settings after = with(settings(), due->second);
    if (before_change) before_change(step);
    const auto renewed = trainer_.renew(after, {.state = true}, step);
    if (!renewed && renewed.error().kind == ErrorKind::lost) return is_dead_();
    if (!renewed && renewed.error().kind == ErrorKind::refused) {
      refused.push_back(renewed.error().message);
      changes.erase(due);
      return true;
    }
    EXPECT_TRUE(renewed) << renewed.error().message;
    for (const auto& spec : runtime_schema().settings)
      if (spec.knobs.empty() && after.value(spec.name) != settings().value(spec.name))
        change_at(step, spec.name, after.value(spec.name));
    changes.erase(due);
    return true;
  }

  Trainer& trainer_;
  MeetingPoint& point_;
  World& world_;
  std::function<bool()> is_dead_;
  std::int64_t until_;
  bool lost_ = false, whole_ = true;
};

}  // namespace footplate::testing
