#include "console/host/automation/rule_runs.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "console/host/automation/script_events.h"
#include "console/host/automation/script_results.h"
#include "protocol/value.h"

namespace footplate::host {
namespace {

constexpr std::ptrdiff_t kLongestQueue = 64;  ///< firings of a rule; on()'s events beyond are dropped
constexpr int kMostErrors = 3;                ///< in a row
constexpr int kMostTries = 3;                 ///< of a handler whose process was killed by somebody else
constexpr double kSlow_ms = 100;              ///< a handler that takes longer is named once

/// As warnings begin: "rule 3, every(100, …)".
std::string name_of(const Rule& rule) {
  return "rule " + std::to_string(rule.number) + ", " + rule.spec.text;
}

}  // namespace

void RuleRuns::fire(std::vector<Firing> firings, std::uint64_t hold) {
  const auto is_waited_for = [&](const Rule& rule) { return hold != 0 && rule.spec.sync; };
  std::set<std::int64_t> waited_for;
  for (const Firing& firing : firings)
    if (is_waited_for(*run_.table.find(firing.rule))) waited_for.insert(firing.rule);
  if (waited_for.empty() && hold != 0) run_.ports.to_rank(ReleaseHold{hold});
  if (!waited_for.empty()) holds_[hold] = std::move(waited_for);  // an event that is left out is released
  for (Firing& firing : firings) {
    Rule& rule = *run_.table.find(firing.rule);
    if (rule.on_schedule()) {
      rule.fired_at = run_.ports.step();
      run_.dirty = true;
    }
    if (firing.at_step && *firing.at_step <= run_.ports.step())
      run_.warn_of(rule, name_of(rule) + ": the run is at step " + std::to_string(run_.ports.step()) +
                             " already; it applies at the next step");
    const bool sync = is_waited_for(rule);
    if (sync) firing.hold = hold;
    queue(process_of_(rule), std::move(firing), sync);
  }
}

/// A rule that hasn't come round to the last one gets the newest step or metrics; whole events wait in line.
void RuleRuns::queue(ScriptProcess& process, Firing firing, bool first) {
  std::deque<Firing>& line = process.queue();
  Rule& rule = *run_.table.find(firing.rule);
  const bool on_event = rule.spec.kind == RuleKind::on;
  const bool newest_counts = !on_event || rule.spec.event == RuleEvent::log;
  const auto is_its = [&](const Firing& other) { return other.rule == firing.rule; };
  const auto waiting = std::ranges::find_if(line, is_its);
  if (newest_counts && waiting != line.end()) {
    release(*waiting);
    *waiting = std::move(firing);
  } else if (on_event && std::ranges::count_if(line, is_its) >= kLongestQueue) {
    leave_out(rule);
    release(firing);
  } else if (first) {
    line.push_front(std::move(firing));
  } else {
    line.push_back(std::move(firing));
  }
}

/// Said once until it has run again: two rules on("warn") would have each other warned for ever.
void RuleRuns::leave_out(Rule& rule) {
  if (std::exchange(rule.said_left_out, true)) return;
  const char* const why = rule.has_function ? "doesn't keep up" : "waits for its chunk to run again";
  run_.warn_of(rule, name_of(rule) + ", " + why + ": events are left out");
}

void RuleRuns::send_next(ScriptProcess& process) {
  std::deque<Firing>& line = process.queue();
  for (auto next = line.begin(); next != line.end();) {
    const Rule* rule = run_.table.find(next->rule);
    const bool on = rule != nullptr && rule->on();
    if (!on || !rule->has_function) {
      release(*next);  // training doesn't wait for a chunk to come back
      next = on ? std::next(next) : line.erase(next);
      continue;
    }
    Firing firing = std::move(*next);
    line.erase(next);
    HandleRule handle;
    handle.id = "h" + std::to_string(++last_handle_);
    handle.chunk = rule->chunk;
    handle.index = rule->spec.index;
    handle.name = "rule " + std::to_string(rule->number);
    handle.text = name_of(*rule);
    handle.source = rule->spec.source;
    if (rule->spec.budget_ms > 0) handle.budget_ms = rule->spec.budget_ms;
    handle.event = firing.event;
    handle.at_step = firing.at_step;
    handle.stop_when = rule->spec.kind == RuleKind::stop_when;
    handle.of_metrics = handle.stop_when || rule->spec.event == RuleEvent::log;
    if (handle.stop_when) handle.event = metrics_alone(firing.event);
    return process.handle(std::move(firing), handle);
  }
}

void RuleRuns::handled(ScriptProcess& process, Firing firing, const ChunkEnd& end) {
  release(firing);
  Rule* rule = run_.table.find(firing.rule);
  if (rule == nullptr) return;
  if (std::exchange(rule->fired_at, -1) >= 0) run_.dirty = true;
  rule->said_left_out = false;
  if (!end) return retry_or_fail(process, std::move(firing), end.error());
  ++rule->runs;
  rule->errors_in_a_row = 0;
  HandlerTime time;
  if (read_json(end->value, time) && time.ran_ms > kSlow_ms && !rule->said_slow) {
    rule->said_slow = true;
    run_.warn_of(*rule, name_of(*rule) + ", took " + shortest(std::round(time.ran_ms)) +
                            " ms (its budget_ms is " + shortest(rule->spec.budget_ms) + "); said once");
  }
  if (!rule->fires_once()) return;
  rule->state = RuleState::done;
  run_.dirty = true;
  run_.forget = true;
}

/// Killed for its own fault, or an error of its own: an error. Killed by somebody else: again, unless what it
/// wanted is on its way.
void RuleRuns::retry_or_fail(ScriptProcess& process, Firing firing, const ChunkFailure& failure) {
  Rule& rule = *run_.table.find(firing.rule);
  const std::string& error = failure.error.message;
  if (!failure.own_fault && !firing.ordered && ++firing.tries < kMostTries) {
    if (rule.on_schedule()) rule.fired_at = run_.ports.step();
    process.queue().push_front(std::move(firing));
    return;
  }
  if (failure.own_fault) return failed(rule, error, std::max(run_.ports.step(), firing.step));
  ++rule.runs;
  if (rule.fires_once()) rule.state = RuleState::done;
  run_.dirty = true;
}

void RuleRuns::failed(Rule& rule, const std::string& error, std::int64_t step) {
  if (run_.ends()) return;
  const std::string text = name_of(rule) + ", failed at step " + std::to_string(step) + ": " + error;
  run_.warn_of(rule, text);
  ++rule.runs;
  if (rule.fires_once()) {
    rule.state = RuleState::done;
    rule.why = error;
  } else if (++rule.errors_in_a_row >= kMostErrors) {
    switch_off(rule, "three errors in a row");
  }
  run_.dirty = true;
  const OnError what = rule.spec.on_error.value_or(run_.unattended ? OnError::stop : OnError::warn);
  if (what == OnError::pause) run_.act("run.pause", "reason", text);
  if (what == OnError::stop) run_.act("run.stop", "error", text);
}

void RuleRuns::switch_off(Rule& rule, const std::string& why) {
  rule.state = RuleState::off;
  rule.why = why;
  run_.dirty = true;
  run_.publish(RuleChange{rule.number, name_of(rule) + ", is off: " + why});
  run_.forget = true;
  tell_sync();
}

void RuleRuns::switch_off_all(const std::string& job, const std::string& why) {
  for (auto& [number, rule] : run_.table.all())
    if (rule.job == job && rule.on()) switch_off(rule, why);
}

void RuleRuns::decided(std::int64_t rule) {
  for (const auto& [hold, rules] : std::map(holds_)) release(hold, rule);
}

void RuleRuns::release(std::uint64_t hold, std::int64_t rule) {
  const auto found = holds_.find(hold);
  if (found == holds_.end() || found->second.erase(rule) == 0 || !found->second.empty()) return;
  holds_.erase(found);
  run_.ports.to_rank(ReleaseHold{hold});
}

void RuleRuns::tell_sync() {
  auto budgets = run_.table.sync_budgets();
  if (budgets == told_sync_) return;
  told_sync_ = budgets;
  run_.ports.to_rank(SyncTopics{std::move(budgets)});
}

}  // namespace footplate::host
