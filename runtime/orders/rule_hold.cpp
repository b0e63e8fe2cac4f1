#include "runtime/orders/rule_hold.h"

#include <fmt/format.h>

#include <chrono>
#include <utility>

#include "runtime/watch/event_parts.h"

namespace footplate {

bool RuleHold::set_budgets(SyncTopics budgets) {
  budgets_ = std::move(budgets);
  if (!hold_ || budgets_.budget_ms.contains(hold_->topic)) return false;
  hold_.reset();
  return true;
}

std::uint64_t RuleHold::begin(Topic topic) {
  const auto found = budgets_.budget_ms.find(topic);
  if (found == budgets_.budget_ms.end() || found->second <= 0) return 0;
  const auto budget = std::chrono::duration_cast<SteadyClock::duration>(
      std::chrono::duration<double, std::milli>(found->second));
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
  const std::string_view rules_say = late->topic == Topic::metrics ? "log" : to_string(late->topic);
  return Published{
      warning_of(WarningKind::sync,
                 fmt::format("a rule with sync = true on {} took longer than its budget_ms; training "
                             "went on without it (said once)",
                             rules_say)),
      std::chrono::system_clock::now(), 0};
}

}  // namespace footplate
