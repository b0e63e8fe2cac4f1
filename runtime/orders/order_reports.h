#pragma once

#include <cstddef>
#include <deque>
#include <functional>
#include <string>

#include "runtime/orders/order_entry.h"

namespace footplate {

/// Rank 0: gives the final order reports, and keeps the last ones for a new console: with the orders in them,
/// a console that died between hearing of one and writing it down costs the journal nothing. Bounded in
/// number and in bytes.
class OrderReports {
 public:
  using Report = std::function<void(const std::string& topic, Json data)>;
  OrderReports(Report report, std::size_t most) : report_(std::move(report)), most_(most) {}

  /// What has become of `entry`. Where it is applied the report gets the order.
  void give_final(Json report, const OrderEntry& entry);
  /// Oldest first.
  const std::deque<Json>& final_ones() const { return final_; }

 private:
  Report report_;
  std::size_t most_;
  std::deque<Json> final_;
  std::size_t bytes_ = 0;  ///< of final_, as text
};

}  // namespace footplate
