#include "runtime/control/state_repair.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "runtime/orders/call_result.h"

namespace footplate {
namespace {

constexpr auto kRepair = "guard.repair";

}  // namespace

void StateRepair::tick(Clock::time_point now) {
  for (const Warning& difference : std::exchange(differences_, {})) act_on(difference, now);
}

void StateRepair::act_on(const Warning& difference, Clock::time_point now) {
  const std::int64_t step = difference.step.value_or(0);
  const std::vector<int> odd = difference.ranks.value_or(std::vector<int>());
  if (step <= repaired_at_) return;
  const bool has_majority = odd.size() < static_cast<std::size_t>(parts_.channel.world_size());
  odd_ = has_majority ? odd : std::vector<int>();
  parts_.status.note("state_hash", difference.text);
  if (on_mismatch_ == OnMismatch::stop)
    return parts_.coordinator.stop(difference.text, /*resumable=*/true, now, /*save=*/false);
  if (on_mismatch_ != OnMismatch::repair || order_ != 0) return;
  if (!has_majority) return;  // nobody knows which side is right
  int source = 0;
  while (std::find(odd.begin(), odd.end(), source) != odd.end()) ++source;
  Order order;
  order.source = fmt::format("-- guard.on_mismatch: {}", difference.text);
  order.calls = {{kRepair, {{"source", source}}}};
  order_ = parts_.coordinator.submit_own(std::move(order), now);
}

void StateRepair::note(const OrderReport& report) {
  if (report.id == order_ && is_final(report.state) && report.state != OrderState::applied) order_ = 0;
}

/// Also of an order that people have given.
void StateRepair::note(const CallReport& report) {
  if (report.action != kRepair || !is_final(report.state)) return;
  if (report.order == order_) order_ = 0;
  StateRepaired repaired;
  if (report.state != CallState::done || !read_json(report.result, repaired)) return;
  repaired_at_ = repaired.step;
  level();
}

void StateRepair::level() {
  odd_.clear();
  parts_.status.note("state_hash", "");
}

void StateRepair::change_world(const std::vector<int>& before) {
  std::vector<int> odd;
  for (std::size_t rank = 0; rank < before.size(); ++rank)
    if (std::find(odd_.begin(), odd_.end(), before[rank]) != odd_.end())
      odd.push_back(static_cast<int>(rank));
  const bool are_gone = !odd_.empty() && odd.empty();
  odd_ = std::move(odd);
  if (are_gone) level();
}

}  // namespace footplate
