#include "runtime/control/state_repair.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "runtime/orders/call_result.h"

namespace footplate {

void StateRepair::tick(Clock::time_point now) {
  for (const Warning& difference : std::exchange(differences_, {})) act_on(difference, now);
}

void StateRepair::act_on(const Warning& difference, Clock::time_point now) {
  const std::int64_t step = difference.step.value_or(0);
  const std::vector<int> odd = difference.ranks.value_or(std::vector<int>());
  if (on_mismatch_ == OnMismatch::stop)
    return parts_.coordinator.stop(difference.text, /*resumable=*/true, now, /*save=*/false);
  if (on_mismatch_ != OnMismatch::repair || order_ != 0 || step < repaired_before_) return;
  int source = 0;
  while (std::find(odd.begin(), odd.end(), source) != odd.end()) ++source;
  if (source >= parts_.channel.world_size()) return;  // no majority: nobody knows which side is right
  Order order;
  order.source = fmt::format("-- guard.on_mismatch: {}", difference.text);
  order.calls = {{"guard.repair", {{"source", source}}}};
  order_ = parts_.coordinator.submit_own(std::move(order), now);
}

void StateRepair::note(const OrderReport& report) {
  if (report.id == order_ && is_final(report.state) && report.state != OrderState::applied) order_ = 0;
}

void StateRepair::note(const CallReport& report) {
  if (order_ == 0 || report.order != order_ || !is_final(report.state)) return;
  order_ = 0;
  StateRepaired repaired;
  if (report.state != CallState::done || !read_json(report.result, repaired)) return;
  repaired_before_ = repaired.step;
  parts_.status.note("state_hash", "");
}

}  // namespace footplate
