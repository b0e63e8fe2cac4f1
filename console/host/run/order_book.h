#pragma once

#include <cstdint>
#include <list>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "protocol/messages/order_report.h"

namespace footplate::host {

/// All orders that the console has heard of: the open ones, and the last 1,000 that are final.
class OrderBook {
 public:
  /// One order: its latest report, always with `ref` or `id`, and with `order` where it is known.
  struct Entry {
    std::string ref;
    std::uint64_t id = 0;
    OrderReport report;

    bool final() const { return is_final(report.state); }
    bool committed() const { return final() || report.state == OrderState::committed; }  ///< or final
  };

  /// An order on its way to rank 0.
  void submitted(const std::string& ref, const Order& order);

  /// A report of rank 0. Returns the order it is about.
  const Entry& report(const OrderReport& report);
  void call_report(const CallReport& report);

  /// By rank 0's number, else by the console's word. Null where there is none.
  const Entry* find(std::uint64_t id, const std::string& ref) const;

  /// The latest report of a call; null where nobody has heard of it. Until the next report.
  const CallReport* call(std::uint64_t order, std::size_t call) const;

  /// Reports, open ones first, then the newest. Until the next report.
  std::vector<const OrderReport*> list() const;

 private:
  Entry& entry_for(const OrderReport& report);
  void forget_old();

  std::list<Entry> entries_;  ///< oldest first
  std::map<std::pair<std::uint64_t, std::size_t>, CallReport> calls_;
};

}  // namespace footplate::host
