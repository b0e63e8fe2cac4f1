#include "runtime/train/share_state.h"

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "runtime/comm/agree.h"
#include "runtime/orders/held_share.h"
#include "runtime/state/move_state.h"

namespace footplate {
namespace {

constexpr auto kModel = "model/";
constexpr auto kOptimizer = "optim/";

/// What a rank tells the others of itself. A task's states follow from whole parameters (Task::update).
struct Holding {
  std::uint64_t applied = 0;                       ///< how many orders are in force
  std::int32_t share = 0, copied = 0, shares = 1;  ///< as of HeldShare
  std::int32_t whole = 0;                          ///< 1: its state is that of a step
  std::int32_t behind = 0;                         ///< 1: of the one before
  std::int32_t parameters_whole = 0;               ///< 1: all parameters are of that step
  std::int32_t stage = 0, copies = 0;              ///< as of Sharding
};

using Entries = std::vector<StateEntry>;

void drop_model(Entries& entries) {
  std::erase_if(entries, [](const StateEntry& entry) { return entry.name.starts_with(kModel); });
}

void drop_replicated(Entries& entries) {
  std::erase_if(entries, [](const StateEntry& entry) { return entry.placement == Placement::replicated; });
}

void append(Entries& entries, const Entries& more) {
  entries.insert(entries.end(), more.begin(), more.end());
}

/// The ranks, and what of the state is with whom.
class Holdings {
 public:
  static Result<Holdings> of(const Training& training, const OptimizerShare& has, bool parameters_whole,
                             const Rejoin& now) {
    Holding mine;
    mine.applied = training.gate != nullptr ? training.gate->applied() : 0;
    mine.share = has.share();
    mine.copied = has.copied_share();
    mine.shares = has.shares();
    mine.whole = now.whole ? 1 : 0;
    mine.behind = now.behind ? 1 : 0;
    mine.parameters_whole = parameters_whole ? 1 : 0;
    mine.stage = training.sharding().stage;
    mine.copies = training.sharding().copies ? 1 : 0;
    auto all = from_all_ranks(training.options.communicator, mine, "shares");
    if (!all) return tl::unexpected(all.error());
    return Holdings(training.rank(), *std::move(all), now.source);
  }

  bool some_are_behind() const {
    return std::ranges::any_of(all_, [](const Holding& one) { return one.whole != 0 && one.behind != 0; });
  }
  bool parameters_move() const {
    return std::ranges::any_of(all_, [](const Holding& one) {
      return one.whole == 0 || one.behind != 0 || one.parameters_whole == 0;
    });
  }
  /// Whether on some ranks the task's update of the last step is pending.
  bool update_is_pending() const {
    return std::ranges::any_of(all_, [](const Holding& one) { return one.parameters_whole == 0; });
  }
  /// How the newest settings have it: a rank may have been lost as an order about it was applied.
  Sharding newest() const {
    const Holding& newest = *std::ranges::max_element(all_, {}, &Holding::applied);
    return {newest.stage, newest.copies != 0};
  }

  /// What this rank gives of what it had: its own, and the copy where the rank that it is of isn't here any
  /// more. What all have alike one rank gives; and a rank that has all of the state gives all. Of two
  /// divisions the ranks of one give, and those of the other nothing.
  Entries given(const OptimizerShare& had) const {
    if (!gives(mine())) return {};
    if (division_ == 1) return first_that_gives() == rank_ ? had.own() : Entries();
    Entries given = had.own();
    const bool by_source = gives(all_[static_cast<std::size_t>(source_)]);
    if (rank_ != (by_source ? source_ : first_that_gives())) drop_replicated(given);
    if (!is_here(had.copied_share())) {
      Entries copied = had.copied();
      drop_replicated(copied);
      append(given, copied);
    }
    return given;
  }

 private:
  Holdings(int rank, std::vector<Holding> all, int source)
      : rank_(rank), all_(std::move(all)), source_(source) {
    std::vector<HeldShare> held;
    for (const Holding& one : all_)
      if (one.whole != 0) held.push_back({one.share, one.copied, one.shares});
    division_ = whole_division(held);
  }

  const Holding& mine() const { return all_[static_cast<std::size_t>(rank_)]; }
  bool gives(const Holding& one) const { return one.whole != 0 && one.shares == division_; }
  bool is_here(int share) const {
    return std::ranges::any_of(all_, [&](const Holding& one) { return gives(one) && one.share == share; });
  }
  int first_that_gives() const {
    const auto found = std::ranges::find_if(all_, [this](const Holding& one) { return gives(one); });
    return static_cast<int>(found - all_.begin());
  }

  int rank_;
  std::vector<Holding> all_;
  int source_;
  int division_ = 0;  ///< whose shares count; 0: some are gone, and a checkpoint has the state
};

/// Of the optimizer's state, and of all parameters.
Entries wanted_by(const Training& training, const OptimizerShare& has) {
  Entries wanted = has.own();
  append(wanted, has.copied());
  drop_model(wanted);
  for (const StateEntry& entry : training.state.entries())
    if (entry.name.starts_with(kModel)) wanted.push_back(entry);
  return wanted;
}

TrainStep::Kept take_down(std::unique_ptr<TrainStep>& step) {
  step->forget_loaded();
  TrainStep::Kept kept = step->take_kept();
  step.reset();
  return kept;
}

/// May throw: it takes memory, what is `had` aside.
void set_up(Training& training, const Reporter& reporter, std::unique_ptr<TrainStep>& step,
            const TrainStep::Kept& kept, const Sharding& sharding,
            std::unique_ptr<OptimizerShare> had = nullptr) {
  step.reset();
  for (const Parameter& parameter : training.task->parameters()) parameter.tensor.mutable_grad().reset();
  training.state.remove(kOptimizer);
  training.set_sharding(sharding);
  step = std::make_unique<TrainStep>(training, reporter, std::move(had));
  step->configure({});
  step->put_kept(kept);
}

Result<void> move_all(const Training& training, Entries given, Entries wanted, bool with_parameters) {
  if (!with_parameters) {
    drop_model(given);
    drop_model(wanted);
  }
  return move_state(training.options.communicator, given, wanted);
}

}  // namespace

/// Parameters that are moved are written where they are: until all have come, they are of two steps.
Result<void> share_state(Training& training, const Reporter& reporter, std::unique_ptr<TrainStep>& step,
                         std::unique_ptr<OptimizerShare>& had, const Rejoin& now,
                         const std::function<Result<void>()>& level) {
  const auto holdings = Holdings::of(training, had ? *had : step->optimizer(),
                                     had == nullptr && step->parameters_are_whole(), now);
  if (!holdings) return tl::unexpected(holdings.error());
  if (holdings->some_are_behind())
    if (auto there = step->catch_up(now.source, now.whole && now.behind); !there) return there;
  if (auto levelled = level(); !levelled) return levelled;
  TrainStep::Kept kept = take_down(step);
  if (!had) had = std::move(kept.optimizer);
  if (!now.whole) had.reset();  // it gives nothing
  training.options.joins = false;
  set_up(training, reporter, step, kept, holdings->newest());
  auto moved = move_all(training, had ? holdings->given(*had) : Entries(),
                        wanted_by(training, step->optimizer()), holdings->parameters_move());
  if (!moved) return moved;
  had.reset();
  step->make_pending_update();
  // Whoever was behind, and has the states of the others as they were before it, has nothing to make it with.
  return holdings->update_is_pending() ? level() : Result<void>();
}

Result<void> divide_anew(Training& training, const Reporter& reporter, std::unique_ptr<TrainStep>& step,
                         std::unique_ptr<OptimizerShare>& had, const Rejoin& now) {
  const auto holdings =
      Holdings::of(training, had ? *had : step->optimizer(), /*parameters_whole=*/false, now);
  if (!holdings) return tl::unexpected(holdings.error());
  const std::int64_t smaller_micro_batch = take_down(step).smaller_micro_batch;
  had.reset();
  training.options.joins = false;
  set_up(training, reporter, step, {.smaller_micro_batch = smaller_micro_batch}, holdings->newest());
  return {};
}

Result<void> change_sharding(Training& training, const Reporter& reporter, std::unique_ptr<TrainStep>& step,
                             const Sharding& wanted) {
  const Sharding before = training.sharding();
  const auto holdings = Holdings::of(training, step->optimizer(), /*parameters_whole=*/true, {});
  if (!holdings) return tl::unexpected(holdings.error());
  TrainStep::Kept kept = take_down(step);
  Result<void> mine;
  try {
    set_up(training, reporter, step, kept, wanted);
  } catch (const std::exception& error) {
    mine = fail(ErrorKind::refused, training.device.explain(error));
  }
  auto outcome = agree(training.options.communicator, mine);
  if (outcome)
    outcome = move_all(training, holdings->given(*kept.optimizer), wanted_by(training, step->optimizer()),
                       /*with_parameters=*/false);
  if (outcome) return outcome;
  set_up(training, reporter, step, kept, before, std::move(kept.optimizer));
  return outcome;
}

Result<void> copy_shares(const Training& training, const TrainStep& step) {
  if (!training.has_copies()) return {};
  Entries given = step.optimizer().own();
  if (training.rank() != 0) drop_replicated(given);
  return move_all(training, std::move(given), step.optimizer().copied(), /*with_parameters=*/false);
}

}  // namespace footplate
