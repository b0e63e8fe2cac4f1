#pragma once

#include <cstdint>
#include <list>
#include <map>
#include <string>

#include "protocol/json.h"

namespace footplate::host {

/// All orders that the console has heard of: the open ones, and the last 1,000 that are final.
class OrderBook {
 public:
  /// One order: its latest report, always with `ref` or `id`, and with `order` where it is known.
  struct Entry {
    std::string ref;
    std::uint64_t id = 0;
    Json report = Json::object();

    bool final() const;
    bool committed() const;  ///< or final
  };

  /// An order on its way to rank 0.
  void submitted(const std::string& ref, const Json& order);

  /// A report of rank 0. Returns the order it is about.
  const Entry& report(const Json& report);
  void call_report(const Json& report);

  /// By rank 0's number, else by the console's word. Null where there is none.
  const Entry* find(std::uint64_t id, const std::string& ref) const;

  /// The latest report of a call; null where nobody has heard of it.
  Json call(std::uint64_t order, std::int64_t call) const;

  /// Reports, open ones first, then the newest.
  Json list() const;

 private:
  Entry& entry_for(const Json& report);
  void forget_old();

  std::list<Entry> entries_;  ///< oldest first
  std::map<std::pair<std::uint64_t, std::int64_t>, Json> calls_;
};

}  // namespace footplate::host
