#include "runtime/orders/agreed_orders.h"

#include <fmt/format.h>

#include <algorithm>

namespace footplate {

std::vector<int> AgreedOrder::odd_ranks() const {
  const Confirmation& first = confirmations.of(0);
  std::vector<int> odd;
  for (int rank = 1; rank < confirmations.world_size(); ++rank) {
    const Confirmation& other = confirmations.of(rank);
    const bool at_step = other.step == first.step || went_back;
    if (!at_step || other.digest != first.digest || !other.error.empty()) odd.push_back(rank);
  }
  return odd;
}

SettingsUpdate AgreedOrder::changed_settings(const Schema& schema) const {
  SettingsUpdate changed;
  for (const Moved& one : moved) {
    const SettingSpec* spec = schema.setting(one.name);
    const bool computed = spec != nullptr && !spec->knobs.empty();
    changed.settings[one.name] = {to_json(one.after), computed ? kComputed : source_of(entry.order)};
  }
  return changed;
}

OrderReport AgreedOrder::applied_report() const {
  OrderReport report = report_of(entry, OrderState::applied);
  const int ranks = confirmations.world_size();
  const std::vector<int> odd = odd_ranks();
  report.applied = Applied{entry.order.id, confirmations.of(0).step,   ranks - static_cast<int>(odd.size()),
                           ranks,          confirmations.of(0).digest, moved,
                           renewed_s};
  for (std::size_t call = 0; call < entry.order.calls.size(); ++call)
    report.calls.push_back({call, entry.order.calls[call].action});
  if (!odd.empty())
    report.error = fmt::format(
        "the ranks disagree about order {}: rank {} differs from rank 0 in step or digest; "
        "stop the run and resume it from its last checkpoint",
        entry.order.id, fmt::join(odd, ", rank "));
  return report;
}

void AgreedOrders::add(OrderEntry entry, std::int64_t step, bool targeted, Clock::time_point now) {
  add_calls(entry.order);
  const std::uint64_t id = entry.order.id;
  AgreedOrder agreed{.entry = std::move(entry), .step = step, .targeted = targeted};
  agreed.confirmations = Answers<AgreedOrder::Confirmation>(world_size_);
  if (!targeted) {
    agreed.patience = OrderPatience(now, times_);
    floor_ = step;
  }
  orders_.emplace(id, std::move(agreed));
}

void AgreedOrders::take_over(const Committed& committed) {
  AgreedOrder agreed{
      .entry = {committed.order}, .step = committed.step, .targeted = true, .taken_over = true};
  agreed.confirmations = Answers<AgreedOrder::Confirmation>(world_size_);
  orders_.emplace(committed.order.id, std::move(agreed));
  add_calls(committed.order);
}

void AgreedOrders::inherit(const Committed& committed) {
  orders_.emplace(
      committed.order.id,
      AgreedOrder{.entry = {committed.order}, .step = committed.step, .targeted = committed.targeted});
  if (!committed.targeted) floor_ = std::max(floor_, committed.step);
  add_calls(committed.order);
}

void AgreedOrders::go_on(int world_size, Clock::time_point now) {
  world_size_ = world_size;
  for (auto& [id, agreed] : orders_) {
    agreed.confirmations = Answers<AgreedOrder::Confirmation>(world_size);
    if (agreed.patience || !agreed.targeted) agreed.patience = OrderPatience(now, times_);
  }
}

void AgreedOrders::go_back(std::int64_t left, std::int64_t to) {
  floor_ = std::min(floor_, to);
  for (auto& [id, agreed] : orders_) {
    if (agreed.step > left && agreed.targeted) continue;
    agreed.step = std::min(agreed.step, to);
    agreed.went_back = true;
  }
}

std::optional<AgreedOrder> AgreedOrders::confirm(int rank, const message::Applied& applied,
                                                 Clock::time_point now) {
  const auto found = orders_.find(applied.order);
  if (found == orders_.end()) return std::nullopt;
  AgreedOrder& agreed = found->second;
  agreed.confirmations.add(rank, {applied.step, applied.digest, applied.error});
  if (rank == 0) {
    agreed.moved = applied.moved;
    agreed.renewed_s = applied.renewed_s;
  }
  if (!agreed.patience) agreed.patience = OrderPatience(now, times_);
  if (!agreed.confirmations.are_complete()) return std::nullopt;
  return std::move(orders_.extract(found).mapped());
}

const AgreedOrder* AgreedOrders::find(std::uint64_t id) const {
  const auto found = orders_.find(id);
  return found == orders_.end() ? nullptr : &found->second;
}

OrderEntry AgreedOrders::take(std::uint64_t id) {
  return std::move(orders_.extract(id).mapped().entry);
}

std::vector<AgreedOrder> AgreedOrders::take_all() {
  std::vector<AgreedOrder> taken;
  for (auto& [id, agreed] : std::exchange(orders_, {})) taken.push_back(std::move(agreed));
  calls_.clear();
  return taken;
}

std::size_t AgreedOrders::count_given() const {
  return static_cast<std::size_t>(std::count_if(orders_.begin(), orders_.end(),
                                                [](const auto& entry) { return !entry.second.taken_over; }));
}

void AgreedOrders::add_calls(const Order& order) {
  for (std::size_t call = 0; call < order.calls.size(); ++call) calls_.insert({order.id, call});
}

void AgreedOrders::end_calls(const Order& order) {
  for (std::size_t call = 0; call < order.calls.size(); ++call) end_call(order.id, call);
}

std::vector<const AgreedOrder*> AgreedOrders::take_impatient(Clock::time_point now) {
  std::vector<const AgreedOrder*> impatient;
  for (auto& [id, agreed] : orders_)
    if (agreed.patience && agreed.patience->is_over(now)) impatient.push_back(&agreed);
  return impatient;
}

AgreedOrders::Clock::time_point AgreedOrders::next_impatient() const {
  auto next = Clock::time_point::max();
  for (const auto& [id, agreed] : orders_)
    if (agreed.patience) next = std::min(next, agreed.patience->next());
  return next;
}

}  // namespace footplate
