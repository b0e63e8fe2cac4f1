#pragma once

#include <cstdint>
#include <vector>

#include "runtime/orders/answers.h"
#include "runtime/orders/order_entry.h"
#include "runtime/orders/order_patience.h"
#include "runtime/watch/messages.h"

namespace footplate {

/// Rank 0: the order that the ranks agree on now. First each says that it can (prepare), then each gives its
/// fence, the first step that it doesn't begin before it knows the outcome.
class OpenRound {
 public:
  using Clock = SteadyClock;
  OpenRound(OrderEntry entry, std::uint64_t ticket, int world_size, Clock::time_point now,
            const ControlTimes& times);

  /// The question that all ranks are asked first.
  message::ToRanks question() const;
  bool is_fencing() const { return fencing_; }
  /// `rank` can. Whether all have said so.
  bool add_prepared(int rank);
  /// All are asked for their fences.
  void start_fencing();
  /// Whether all have given theirs.
  bool add_fence(int rank, std::int64_t step);
  /// Once they have: the first step that nobody has begun, or `least` where that is later.
  std::int64_t first_step(std::int64_t least) const;

  std::vector<int> unanswered() const { return answers_.missing(); }
  /// It is aborted then.
  Clock::time_point deadline() const { return deadline_; }
  OrderPatience& patience() { return patience_; }
  const OrderPatience& patience() const { return patience_; }
  std::uint64_t ticket() const { return ticket_; }
  const OrderEntry& entry() const { return entry_; }

 private:
  OrderEntry entry_;
  std::uint64_t ticket_;
  bool fencing_ = false;
  Answers<std::int64_t> answers_;  ///< prepared (any value), or the fence
  Clock::time_point deadline_;
  OrderPatience patience_;
};

}  // namespace footplate
