#include "console/host/run/order_book.h"

#include <algorithm>

namespace footplate::host {
namespace {

constexpr std::size_t kKept = 1000;

}  // namespace

void OrderBook::submitted(const std::string& ref, const Order& order) {
  Entry& entry = entries_.emplace_back();
  entry.ref = entry.report.ref = ref;
  entry.report.order = order;
  forget_old();
}

OrderBook::Entry& OrderBook::entry_for(const OrderReport& report) {
  const auto found = std::find_if(entries_.begin(), entries_.end(), [&](const Entry& entry) {
    return (report.id != 0 && entry.id == report.id) ||
           (entry.id == 0 && !report.ref.empty() && entry.ref == report.ref);
  });
  if (found != entries_.end()) {
    if (report.id != 0) found->id = report.id;
    return *found;
  }
  forget_old();
  entries_.push_back({report.ref, report.id, {}});
  return entries_.back();
}

const OrderBook::Entry& OrderBook::report(const OrderReport& report) {
  Entry& entry = entry_for(report);
  // The status in rank 0's hello may be half a second older than the final reports beside it.
  if (entry.final() && !is_final(report.state)) return entry;
  if (report.state == OrderState::waiting) {
    entry.report.text = report.text;
    if (report.step) entry.report.step = report.step;
    if (!entry.committed()) entry.report.state = report.step ? OrderState::committed : OrderState::waiting;
    entry.report.id = entry.id;
    return entry;
  }
  auto order = std::move(entry.report.order);
  entry.report = report;
  if (!entry.report.order) entry.report.order = std::move(order);
  if (entry.report.order && entry.id != 0) entry.report.order->id = entry.id;
  for (const StartedCall& started : report.calls) {
    const std::pair key(entry.id, started.call);
    if (calls_.contains(key)) continue;
    CallReport& call = calls_[key];
    call.order = key.first;
    call.call = key.second;
    call.action = started.action;
  }
  return entry;
}

void OrderBook::call_report(const CallReport& report) {
  calls_[{report.order, report.call}] = report;
  while (calls_.size() > kKept) {
    const auto over =
        std::ranges::find_if(calls_, [](const auto& one) { return is_final(one.second.state); });
    if (over == calls_.end()) return;  // somebody may wait for any of them
    calls_.erase(over);
  }
}

const OrderBook::Entry* OrderBook::find(std::uint64_t id, const std::string& ref) const {
  for (const Entry& entry : entries_)
    if (id != 0 ? entry.id == id : entry.ref == ref && !ref.empty()) return &entry;
  return nullptr;
}

const CallReport* OrderBook::call(std::uint64_t order, std::size_t call) const {
  const auto found = calls_.find({order, call});
  return found == calls_.end() ? nullptr : &found->second;
}

std::vector<const OrderReport*> OrderBook::list() const {
  std::vector<const OrderReport*> list;
  for (const Entry& entry : entries_)
    if (!entry.final()) list.push_back(&entry.report);
  for (auto entry = entries_.rbegin(); entry != entries_.rend(); ++entry)
    if (entry->final()) list.push_back(&entry->report);
  return list;
}

void OrderBook::forget_old() {
  // Open orders stay however old they are; rank 0 bounds their number.
  auto excess = static_cast<std::ptrdiff_t>(entries_.size()) - static_cast<std::ptrdiff_t>(kKept);
  for (auto entry = entries_.begin(); excess > 0 && entry != entries_.end();) {
    const bool goes = entry->final();
    entry = goes ? entries_.erase(entry) : std::next(entry);
    excess -= goes ? 1 : 0;
  }
}

}  // namespace footplate::host
