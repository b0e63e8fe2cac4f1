#include "runtime/orders/rule_hold.h"

#include <fmt/format.h>

#include <chrono>
#include <utility>

namespace footplate {

bool RuleHold::set_budgets(const Json& budgets) {
  budgets_ = budgets.is_object() ? budgets : Json::object();
  if (!hold_ || budgets_.contains(hold_->topic)) return false;
  hold_.reset();
  return true;
}

std::uint64_t RuleHold::begin(const std::string& topic) {
  const double budget_ms = budgets_.value(topic, 0.0);
  if (budget_ms <= 0) return 0;
  const auto budget =
      std::chrono::duration_cast<SteadyClock::duration>(std::chrono::duration<double, std::milli>(budget_ms));
  hold_ = Hold{++last_id_, topic, SteadyClock::now() + budget};
  return hold_->id;
}

bool RuleHold::release(std::uint64_t id) {
  if (!hold_ || hold_->id != id) return false;
  hold_.reset();
  return true;
}

std::optional<Published> RuleHold::end() {
  const auto late = std::exchange(hold_, std::nullopt);
  if (!late || std::exchange(said_late_, true)) return std::nullopt;
  return Published{
      "warn",
      {{"kind", "sync"},
       {"text", fmt::format("a rule with sync = true on {} took longer than its budget_ms; training "
                            "went on without it (said once)",
                            late->topic == "metrics" ? "log" : late->topic)}},
      std::chrono::system_clock::now(),
      0};
}

}  // namespace footplate
