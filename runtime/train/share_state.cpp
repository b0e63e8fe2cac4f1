#include "runtime/train/share_state.h"

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "runtime/comm/agree.h"
#include "runtime/state/move_state.h"

namespace footplate {
namespace {

constexpr auto kModel = "model/";
constexpr auto kOptimizer = "optim/";

/// What a rank tells the others of itself.
struct Holding {
  std::int32_t share = 0, shares = 1;  ///< as of HeldShare
  std::int32_t whole = 0;              ///< 1: its state is that of a step
  std::int32_t behind = 0;             ///< 1: of the one before
  std::int32_t parameters_whole = 0;   ///< 1: all parameters are of that step
};

using Entries = std::vector<StateEntry>;

void keep_model(Entries& entries, bool keep) {
  if (keep) return;
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
  Holdings(const Training& training, std::vector<Holding> all, const Rejoin& now)
      : rank_(training.rank()), all_(std::move(all)), now_(now) {}

  bool some_are_behind() const {
    return std::ranges::any_of(all_, [](const Holding& one) { return one.whole != 0 && one.behind != 0; });
  }
  bool parameters_move() const {
    return std::ranges::any_of(all_, [](const Holding& one) {
      return one.whole == 0 || one.behind != 0 || one.parameters_whole == 0;
    });
  }

  /// What this rank gives of what it had: its own, and the copy where the rank that it is of isn't here any
  /// more. What all have alike the source gives.
  Entries given(const OptimizerShare& had) const {
    if (!now_.whole) return {};
    Entries given = had.own();
    if (rank_ != now_.source) drop_replicated(given);
    if (!is_here(had.copied_share())) {
      Entries copied = had.copied();
      drop_replicated(copied);
      append(given, copied);
    }
    return given;
  }

 private:
  bool is_here(int share) const {
    return std::ranges::any_of(all_,
                               [share](const Holding& one) { return one.whole != 0 && one.share == share; });
  }

  int rank_;
  std::vector<Holding> all_;
  Rejoin now_;
};

/// Of the optimizer's state, and of all parameters.
Entries wanted(const Training& training, const OptimizerShare& has) {
  Entries wanted = has.own();
  append(wanted, has.copied());
  keep_model(wanted, false);
  for (const StateEntry& entry : training.state.entries())
    if (entry.name.starts_with(kModel)) wanted.push_back(entry);
  return wanted;
}

}  // namespace

Result<void> share_state(Training& training, const Reporter& reporter, std::unique_ptr<TrainStep>& step,
                         const Rejoin& now, const std::function<Result<void>()>& level) {
  Communicator& ranks = training.options.communicator;
  const OptimizerShare& has = step->optimizer();
  const Holding mine{has.share(), has.shares(), now.whole ? 1 : 0, now.behind ? 1 : 0,
                     step->parameters_are_whole() ? 1 : 0};
  auto all = from_all_ranks(ranks, mine, "shares");
  if (!all) return tl::unexpected(all.error());
  const Holdings holdings(training, *std::move(all), now);
  if (holdings.some_are_behind())
    if (auto there = step->catch_up(now.source, now.whole && now.behind); !there) return there;
  if (auto levelled = level(); !levelled) return levelled;

  step->forget_loaded();
  const TrainStep::Kept kept = step->take_kept();
  step.reset();
  training.state.remove(kOptimizer);
  training.settle_sharding();
  step = std::make_unique<TrainStep>(training, reporter);
  step->configure({});
  step->put_kept(kept);

  Entries given = holdings.given(*kept.optimizer), to = wanted(training, step->optimizer());
  keep_model(given, holdings.parameters_move());
  keep_model(to, holdings.parameters_move());
  return move_state(ranks, given, to);
}

Result<void> copy_shares(const Training& training, const TrainStep& step) {
  if (!training.has_copies) return {};
  Entries given = step.optimizer().own(), to = step.optimizer().copied();
  if (training.rank() != 0) drop_replicated(given);
  keep_model(given, false);
  keep_model(to, false);
  return move_state(training.options.communicator, given, to);
}

}  // namespace footplate
