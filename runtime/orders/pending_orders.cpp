#include "runtime/orders/pending_orders.h"

#include <algorithm>
#include <utility>

namespace footplate {
namespace {

bool is_earlier(const Committed& a, const Committed& b) {
  return a.step < b.step;
}

}  // namespace

/// Not by ids: where the run's own stop overtook older orders in the queue, one rank has applied it already.
void PendingOrders::commit(Committed committed) {
  const auto place = std::upper_bound(orders_.begin(), orders_.end(), committed, is_earlier);
  orders_.insert(place, std::move(committed));
  ++commits_;
}

void PendingOrders::withdraw(std::uint64_t order) {
  std::erase_if(orders_, [&](const Committed& committed) { return committed.order.id == order; });
  ++commits_;
}

void PendingOrders::put_back(const Committed& committed) {
  orders_.insert(std::lower_bound(orders_.begin(), orders_.end(), committed, is_earlier), committed);
}

void PendingOrders::go_back(std::int64_t left, std::int64_t to) {
  for (Committed& committed : orders_)
    if (committed.step <= left || !committed.targeted) committed.step = std::min(committed.step, to);
  std::stable_sort(orders_.begin(), orders_.end(), is_earlier);
}

std::optional<Committed> PendingOrders::take_due(std::int64_t step, bool standing) {
  const auto due = std::find_if(orders_.begin(), orders_.end(), [&](const Committed& committed) {
    return committed.step <= step || (standing && !committed.targeted);
  });
  if (due == orders_.end()) return std::nullopt;
  Committed taken = std::move(*due);
  orders_.erase(due);
  return taken;
}

bool PendingOrders::contains(std::uint64_t order) const {
  return std::any_of(orders_.begin(), orders_.end(),
                     [&](const Committed& committed) { return committed.order.id == order; });
}

bool PendingOrders::end_is_due() const {
  return std::any_of(orders_.begin(), orders_.end(), [](const Committed& committed) {
    const auto& calls = committed.order.calls;
    return !committed.targeted &&
           std::any_of(calls.begin(), calls.end(), [](const Call& call) { return ends_start(call.action); });
  });
}

std::optional<std::int64_t> PendingOrders::next_step() const {
  if (orders_.empty()) return std::nullopt;
  return orders_.front().step;
}

}  // namespace footplate
