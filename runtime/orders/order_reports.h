#pragma once

#include <cstddef>
#include <deque>
#include <functional>

#include "runtime/orders/order_entry.h"

namespace footplate {

/// Rank 0: gives the final order reports, and keeps the last ones for a new console: with the orders in them,
/// a console that died between hearing of one and writing it down costs the journal nothing. Bounded in
/// number and in bytes.
class OrderReports {
 public:
  /// A final report, and its bytes as JSON.
  struct Final {
    OrderReport report;
    std::size_t bytes = 0;
  };
  using Tell = std::function<void(OrderReport report)>;
  OrderReports(Tell tell, std::size_t most) : tell_(std::move(tell)), most_(most) {}

  /// What has become of `entry`. Where it is applied the report gets the order.
  void give_final(OrderReport report, const OrderEntry& entry);
  /// Oldest first.
  const std::deque<Final>& final_ones() const { return final_; }

 private:
  Tell tell_;
  std::size_t most_;
  std::deque<Final> final_;
  std::size_t bytes_ = 0;  ///< of all of them
};

}  // namespace footplate
