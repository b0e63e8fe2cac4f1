#include "console/host/automation/rule_runs.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "protocol/value.h"

namespace footplate::host {
namespace {

constexpr std::size_t kLongestQueue = 64;  ///< firings of a process; on()'s events beyond are dropped
constexpr int kMostErrors = 3;             ///< in a row
constexpr int kMostTries = 3;              ///< of a handler whose process was killed by somebody else
constexpr double kSlow_ms = 100;           ///< a handler that takes longer is named once

}  // namespace

void RuleRuns::fire(std::vector<Firing> firings, std::uint64_t hold) {
  std::set<std::int64_t> waited_for;
  for (Firing& firing : firings) {
    Rule& rule = *run_.table.find(firing.rule);
    if (rule.on_schedule()) {
      rule.fired_at = run_.ports.step();
      run_.dirty = true;
    }
    if (firing.at_step && *firing.at_step <= run_.ports.step())
      run_.warn("rule " + std::to_string(rule.number) + ", " + rule.text() + ": the run is at step " +
                std::to_string(run_.ports.step()) + " already; it applies at the next step");
    const bool sync = hold != 0 && rule.sync();
    if (sync) {
      firing.hold = hold;
      waited_for.insert(rule.number);
    }
    queue(process_of_(rule), std::move(firing), sync);
  }
  if (hold == 0) return;
  if (waited_for.empty())
    run_.ports.to_rank({{"type", "release"}, {"hold", hold}});
  else
    holds_[hold] = std::move(waited_for);
}

/// A rule that hasn't come round to the last one gets the newest step or metrics; whole events wait in line.
void RuleRuns::queue(ScriptProcess& process, Firing firing, bool first) {
  std::deque<Firing>& line = process.queue();
  const Rule& rule = *run_.table.find(firing.rule);
  const std::string event = rule.kind() == "on" ? rule.spec.value("event", "") : "log";
  const auto waiting =
      std::find_if(line.begin(), line.end(), [&](const Firing& other) { return other.rule == firing.rule; });
  if (event == "log" && waiting != line.end()) {
    release(*waiting);
    *waiting = std::move(firing);
  } else if (rule.kind() == "on" && line.size() >= kLongestQueue) {
    // The others have one firing in line at most, and would not come back.
    run_.warn("rule " + std::to_string(rule.number) + ", " + rule.text() +
                  ", doesn't keep up: an event was left out",
              {{"rule", rule.number}});
    release(firing);
  } else if (first) {
    line.push_front(std::move(firing));
  } else {
    line.push_back(std::move(firing));
  }
}

void RuleRuns::send_next(ScriptProcess& process) {
  std::deque<Firing>& line = process.queue();
  while (!line.empty()) {
    Firing firing = std::move(line.front());
    line.pop_front();
    const Rule* rule = run_.table.find(firing.rule);
    if (rule == nullptr || !rule->on()) {
      release(firing);
      continue;
    }
    const double budget_ms = rule->spec.value("budget_ms", 2000.0);
    Json message = {{"type", "handle"},
                    {"id", "h" + std::to_string(++last_handle_)},
                    {"chunk", rule->chunk},
                    {"index", rule->spec.value("index", std::int64_t{0})},
                    {"name", "rule " + std::to_string(rule->number)},
                    {"text", "rule " + std::to_string(rule->number) + ", " + rule->text()},
                    {"source", rule->spec.value("source", "")},
                    {"budget_ms", budget_ms},
                    {"event", firing.event}};
    if (firing.at_step) message["at_step"] = *firing.at_step;
    if (rule->kind() == "stop_when") message["stop_when"] = true;
    return process.handle(std::move(firing), message, budget_ms / 1e3);
  }
}

void RuleRuns::handled(ScriptProcess& process, Firing firing, const Json& message) {
  release(firing);
  Rule* rule = run_.table.find(firing.rule);
  if (rule == nullptr) return;
  if (std::exchange(rule->fired_at, -1) >= 0) run_.dirty = true;
  if (message.value("type", "") == "error") return retry_or_fail(process, std::move(firing), message);
  ++rule->runs;
  rule->errors_in_a_row = 0;
  const double ran_ms =
      message.value("value", Json::object()).value("value", Json::object()).value("ran_ms", 0.0);
  if (ran_ms > kSlow_ms && !rule->said_slow) {
    rule->said_slow = true;
    run_.warn("rule " + std::to_string(rule->number) + ", " + rule->text() + ", took " +
                  shortest(std::round(ran_ms)) + " ms (its budget_ms is " +
                  shortest(rule->spec.value("budget_ms", 0.0)) + "); said once",
              {{"rule", rule->number}});
  }
  if (!rule->fires_once()) return;
  rule->state = Rule::State::done;
  run_.dirty = true;
  run_.forget = true;
}

/// Killed for its own fault, or an error of its own: an error. Killed by somebody else: again, unless what it
/// wanted is on its way.
void RuleRuns::retry_or_fail(ScriptProcess& process, Firing firing, const Json& message) {
  Rule& rule = *run_.table.find(firing.rule);
  const std::string error = error_from_json(message.value("error", Json())).message;
  const bool own_fault = !message.value("lost", false) || error.find("was killed") != std::string::npos;
  if (!own_fault && !firing.ordered && ++firing.tries < kMostTries) {
    if (rule.on_schedule()) rule.fired_at = run_.ports.step();
    process.queue().push_front(std::move(firing));
    return;
  }
  if (own_fault)
    return failed(rule, error, std::max(run_.ports.step(), firing.event.value("step", std::int64_t{0})));
  ++rule.runs;
  if (rule.fires_once()) rule.state = Rule::State::done;
  run_.dirty = true;
}

void RuleRuns::failed(Rule& rule, const std::string& error, std::int64_t step) {
  if (run_.ends()) return;
  const std::string text = "rule " + std::to_string(rule.number) + ", " + rule.text() + ", failed at step " +
                           std::to_string(step) + ": " + error;
  run_.warn(text, {{"rule", rule.number}});
  ++rule.runs;
  if (rule.fires_once()) {
    rule.state = Rule::State::done;
    rule.why = error;
  } else if (++rule.errors_in_a_row >= kMostErrors) {
    switch_off(rule, "three errors in a row");
  }
  run_.dirty = true;
  const std::string what = rule.spec.value("on_error", run_.unattended ? "stop" : "warn");
  if (what == "pause") run_.act("run.pause", {{"reason", text}});
  if (what == "stop") run_.act("run.stop", {{"error", text}});
}

void RuleRuns::switch_off(Rule& rule, const std::string& why) {
  rule.state = Rule::State::off;
  rule.why = why;
  run_.dirty = true;
  run_.publish("rule",
               {{"rule", rule.number},
                {"text", "rule " + std::to_string(rule.number) + ", " + rule.text() + ", is off: " + why}});
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
  run_.ports.to_rank({{"type", "release"}, {"hold", hold}});
}

void RuleRuns::tell_sync() {
  const Json budgets = run_.table.sync_budgets();
  if (budgets == told_sync_) return;
  told_sync_ = budgets;
  run_.ports.to_rank({{"type", "sync"}, {"topics", budgets}});
}

}  // namespace footplate::host
