#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "runtime/orders/forecast.h"

namespace footplate {

/// The orders that this rank knows to be agreed and hasn't applied, by step, then as they were committed.
/// Guarded by the gate's mutex.
class PendingOrders {
 public:
  /// One more commit heard of. Behind the orders of the same step: the order of commits is the same on all
  /// ranks.
  void commit(Committed committed);
  /// One more commit heard of, which withdraws an order.
  void withdraw(std::uint64_t order);
  /// One that was taken, in front of those of its step.
  void put_back(const Committed& committed);

  /// Training goes back from step `left` to step `to`. What some rank may have applied by then, all apply at
  /// `to`: orders up to `left`, and those without a target.
  void go_back(std::int64_t left, std::int64_t to);

  /// Removes the next order to apply at the top of `step`. Where training stands, those without a target are
  /// due whatever their step: every rank comes to the same state before it looks, so all do the same.
  std::optional<Committed> take_due(std::int64_t step, bool standing);

  bool contains(std::uint64_t order) const;
  /// Whether one without a target ends this start of the run. One with a target lets what runs end.
  bool end_is_due() const;
  /// Of the first one; nothing: none.
  std::optional<std::int64_t> next_step() const;
  const std::vector<Committed>& all() const { return orders_; }

  /// How many commits this rank has heard of.
  std::uint64_t commits() const { return commits_; }
  void set_commits(std::uint64_t commits) { commits_ = commits; }

 private:
  std::vector<Committed> orders_;
  std::uint64_t commits_ = 0;
};

}  // namespace footplate
