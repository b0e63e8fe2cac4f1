#include "runtime/control/state_repair.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace footplate {

void StateRepair::tick(Clock::time_point now) {
  for (const Json& difference : std::exchange(differences_, {})) act_on(difference, now);
}

void StateRepair::act_on(const Json& difference, Clock::time_point now) {
  const std::int64_t step = difference.at("step");
  const auto odd = difference.at("ranks").get<std::vector<int>>();
  if (on_mismatch_ == "stop")
    return parts_.coordinator.stop(difference.at("text"), /*resumable=*/true, now, /*save=*/false);
  if (on_mismatch_ != "repair" || order_ != 0 || step < repaired_before_) return;
  int source = 0;
  while (std::find(odd.begin(), odd.end(), source) != odd.end()) ++source;
  if (source >= parts_.channel.world_size()) return;  // no majority: nobody knows which side is right
  Order order;
  order.source = fmt::format("-- guard.on_mismatch: {}", difference.at("text").get<std::string>());
  order.calls = {{"guard.repair", {{"source", source}}}};
  order_ = parts_.coordinator.submit_own(std::move(order), now);
}

void StateRepair::note(const std::string& topic, const Json& report) {
  if (order_ == 0 || report.value(topic == "call" ? "order" : "id", std::uint64_t{0}) != order_) return;
  const std::string state = report.value("state", "");
  if (topic == "order" && (state == "refused" || state == "aborted" || state == "withdrawn")) order_ = 0;
  if (topic != "call" || state == "running") return;
  order_ = 0;
  if (state != "done") return;
  repaired_before_ = report.at("result").value("step", std::int64_t{0});
  parts_.status.note("state_hash", "");
}

}  // namespace footplate
