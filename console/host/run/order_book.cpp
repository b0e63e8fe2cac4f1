#include "console/host/run/order_book.h"

#include <algorithm>

namespace footplate::host {
namespace {

constexpr std::size_t kKept = 1000;

bool one_of(const std::string& text, std::initializer_list<const char*> choices) {
  return std::find(choices.begin(), choices.end(), text) != choices.end();
}

bool is_final(const Json& report) {
  return one_of(report.value("state", ""), {"applied", "refused", "aborted", "withdrawn"});
}

}  // namespace

bool OrderBook::Entry::final() const {
  return is_final(report);
}

bool OrderBook::Entry::committed() const {
  return final() || report.value("state", "") == "committed";
}

void OrderBook::submitted(const std::string& ref, const Json& order) {
  entries_.push_back({ref, 0, {{"ref", ref}, {"state", "sent"}, {"order", order}}});
  forget_old();
}

OrderBook::Entry& OrderBook::entry_for(const Json& report) {
  const auto id = report.value("id", std::uint64_t{0});
  const std::string ref = report.value("ref", "");
  const auto found = std::find_if(entries_.begin(), entries_.end(), [&](const Entry& entry) {
    return (id != 0 && entry.id == id) || (entry.id == 0 && !ref.empty() && entry.ref == ref);
  });
  if (found != entries_.end()) {
    if (id != 0) found->id = id;
    return *found;
  }
  entries_.push_back({ref, id, Json::object()});
  return entries_.back();
}

const OrderBook::Entry& OrderBook::report(const Json& report) {
  Entry& entry = entry_for(report);
  // The status in rank 0's hello may be half a second older than the final reports beside it.
  if (entry.final() && !is_final(report)) return entry;
  if (report.value("state", "") == "waiting") {
    entry.report["text"] = report.value("text", "");
    if (report.contains("step")) entry.report["step"] = report["step"];
    if (!entry.committed()) entry.report["state"] = report.contains("step") ? "committed" : "waiting";
    if (entry.id != 0) entry.report["id"] = entry.id;
    return entry;
  }
  Json order = entry.report.value("order", Json());
  entry.report = report;
  if (!entry.report.contains("order") && order.is_object()) entry.report["order"] = std::move(order);
  if (entry.report.contains("order") && entry.id != 0) entry.report["order"]["id"] = entry.id;
  for (const Json& call : report.value("calls", Json::array())) {
    const std::pair key(entry.id, call.value("call", std::int64_t{0}));
    if (!calls_.contains(key))
      calls_[key] = {{"order", key.first},
                     {"call", key.second},
                     {"action", call.value("action", "")},
                     {"state", "running"}};
  }
  forget_old();
  return entry;
}

void OrderBook::call_report(const Json& report) {
  calls_[{report.value("order", std::uint64_t{0}), report.value("call", std::int64_t{0})}] = report;
  while (calls_.size() > kKept) calls_.erase(calls_.begin());
}

const OrderBook::Entry* OrderBook::find(std::uint64_t id, const std::string& ref) const {
  for (const Entry& entry : entries_)
    if (id != 0 ? entry.id == id : entry.ref == ref && !ref.empty()) return &entry;
  return nullptr;
}

Json OrderBook::call(std::uint64_t order, std::int64_t call) const {
  const auto found = calls_.find({order, call});
  return found == calls_.end() ? Json() : found->second;
}

Json OrderBook::list() const {
  Json open = Json::array();
  Json closed = Json::array();
  for (const Entry& entry : entries_) {
    if (entry.final())
      closed.insert(closed.begin(), entry.report);
    else
      open.push_back(entry.report);
  }
  for (Json& report : closed) open.push_back(std::move(report));
  return open;
}

void OrderBook::forget_old() {
  // Open orders stay however old they are; rank 0 bounds their number.
  auto excess = static_cast<std::ptrdiff_t>(entries_.size()) - static_cast<std::ptrdiff_t>(kKept);
  for (auto entry = entries_.begin(); excess > 0 && entry != entries_.end(); --excess)
    entry = entry->final() ? entries_.erase(entry) : std::next(entry);
}

}  // namespace footplate::host
