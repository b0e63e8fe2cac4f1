#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "protocol/messages/link_messages.h"
#include "protocol/schema.h"
#include "runtime/orders/answers.h"
#include "runtime/orders/forecast.h"
#include "runtime/orders/order_entry.h"
#include "runtime/orders/order_patience.h"
#include "runtime/watch/messages.h"

namespace footplate {

/// Rank 0: an order that the ranks have agreed on, and what they say of applying it.
struct AgreedOrder {
  struct Confirmation {
    std::int64_t step = 0;
    std::string digest;
    std::string error;
  };

  OrderEntry entry;
  std::int64_t step = 0;
  bool targeted = false;
  bool taken_over = false;  ///< committed by every rank before the start
  bool went_back = false;   ///< since its commit: ranks may have applied it on either side, at two steps
  Answers<Confirmation> confirmations = Answers<Confirmation>();
  std::vector<Moved> moved = {};               ///< rank 0's
  std::optional<double> renewed_s = {};        ///< rank 0's; nothing: no communicators were made
  std::optional<OrderPatience> patience = {};  ///< none while the step is far

  std::vector<int> unconfirmed() const { return confirmations.missing(); }
  /// All have confirmed: who differs from rank 0 in step or digest, or has an error.
  std::vector<int> odd_ranks() const;
  /// All have confirmed: the settings that it has moved.
  SettingsUpdate changed_settings(const Schema& schema) const;
  /// All have confirmed. Its error says where they disagree.
  OrderReport applied_report() const;
};

/// Rank 0: the orders between their commit and the confirmation by all ranks, and their calls until these
/// have a result.
class AgreedOrders {
 public:
  using Clock = SteadyClock;
  AgreedOrders(int world_size, ControlTimes times) : world_size_(world_size), times_(times) {}

  void add(OrderEntry entry, std::int64_t step, bool targeted, Clock::time_point now);
  /// An order that every rank has committed by itself before the start.
  void take_over(const Committed& committed);
  /// An order that the others know to be agreed, on a rank that has become rank 0; before go_on().
  void inherit(const Committed& committed);
  /// The ranks are others now, and confirm again what they have applied of late.
  void go_on(int world_size, Clock::time_point now);
  /// Training goes back from step `left` to step `to`, as of PendingOrders::go_back.
  void go_back(std::int64_t left, std::int64_t to);

  /// A rank has applied it. The order, which is no longer here, once all have confirmed it.
  std::optional<AgreedOrder> confirm(int rank, const message::Applied& applied, Clock::time_point now);
  /// Null: there is none.
  const AgreedOrder* find(std::uint64_t id) const;
  /// Removes it.
  OrderEntry take(std::uint64_t id);
  std::vector<AgreedOrder> take_all();
  const std::map<std::uint64_t, AgreedOrder>& all() const { return orders_; }
  /// Those that people have given; of a replay there are as many as the journal has.
  std::size_t count_given() const;

  /// Whether that call is agreed on and without a result.
  bool has_call(std::uint64_t order, std::size_t call) const { return calls_.contains({order, call}); }
  void end_call(std::uint64_t order, std::size_t call) { calls_.erase({order, call}); }
  void end_calls(const Order& order);

  /// For which to say now whom they wait for.
  std::vector<const AgreedOrder*> take_impatient(Clock::time_point now);
  Clock::time_point next_impatient() const;

  /// The step of the last order without a target. Those apply in the order of their numbers, so that ranks
  /// which come to a pause sooner or later apply the same ones there (docs/architecture.md).
  std::int64_t floor() const { return floor_; }

 private:
  void add_calls(const Order& order);

  int world_size_;
  ControlTimes times_;
  std::map<std::uint64_t, AgreedOrder> orders_;
  std::set<std::pair<std::uint64_t, std::size_t>> calls_;
  std::int64_t floor_ = 0;
};

}  // namespace footplate
