#include "console/host/automation/rule_table.h"

#include <algorithm>
#include <cmath>

namespace footplate::host {
namespace {

constexpr double kAhead_ms = 1500;       ///< the status comes twice a second; an order takes milliseconds
constexpr std::int64_t kAheadSteps = 2;  ///< at least
constexpr double kLongestHold_ms = 1000;

const char* name_of(Rule::State state) {
  switch (state) {
    case Rule::State::on:
      return "on";
    case Rule::State::done:
      return "done";
    case Rule::State::off:
      return "off";
  }
  return "off";
}

/// The first multiple of `every` after `step`.
std::int64_t next_multiple(std::int64_t every, std::int64_t step) {
  return (step / every + 1) * every;
}

void arm(Rule& rule, std::int64_t step, double wall_s) {
  const std::string kind = rule.kind();
  if (kind == "every") rule.next_step = next_multiple(rule.spec.value("steps", std::int64_t{1}), step);
  if (kind == "at") rule.next_step = rule.spec.value("step", std::int64_t{0});
  if (kind == "after" && rule.spec.contains("steps"))
    rule.next_step = step + rule.spec.value("steps", std::int64_t{1});
  if (kind == "after" && rule.spec.contains("seconds")) rule.due = wall_s + rule.spec.value("seconds", 0.0);
}

}  // namespace

void Rule::fire_again() {
  if (kind() == "at")
    next_step = spec.value("step", std::int64_t{0});
  else
    next_step = std::max<std::int64_t>(fired_at, 0);
  fired_at = -1;
}

void Rule::end_for_good() {
  state = State::done;
  for_good = true;
  next_step = fired_at = -1;
  due = 0;
}

Json Rule::to_json() const {
  Json json = {{"rule", number},
               {"text", text()},
               {"state", name_of(state)},
               {"runs", runs},
               {"user", user},
               {"kind", kind()},
               {"why", why},
               {"sync", sync()},
               {"budget_ms", spec.value("budget_ms", 0.0)},
               {"line", spec.value("line", 0)}};
  if (!job.empty()) json["job"] = job;
  return json;
}

Json Rule::to_record() const {
  Json json = to_json();
  json["spec"] = spec;
  json["role"] = to_string(role);
  json["chunk"] = chunk;
  json["next_step"] = next_step;
  json["due"] = due;
  json["fired_at"] = fired_at;
  json["called"] = called;
  json["for_good"] = for_good;
  return json;
}

Rule Rule::from_record(const Json& record) {
  Rule rule;
  rule.number = record.at("rule").get<std::int64_t>();
  rule.spec = record.at("spec");
  rule.user = record.value("user", "");
  rule.role = role_from_string(record.value("role", "view")).value_or(Role::view);
  rule.chunk = record.value("chunk", std::int64_t{0});
  const std::string state = record.value("state", "off");
  rule.state = state == "on" ? State::on : state == "done" ? State::done : State::off;
  rule.why = record.value("why", "");
  rule.runs = record.value("runs", std::uint64_t{0});
  rule.next_step = record.value("next_step", std::int64_t{-1});
  rule.due = record.value("due", 0.0);
  rule.fired_at = record.value("fired_at", std::int64_t{-1});
  rule.called = record.value("called", false);
  rule.for_good = record.value("for_good", false);
  return rule;
}

Rule& RuleTable::add(Rule rule, std::int64_t step, double wall_s) {
  rule.number = next_number++;
  arm(rule, step, wall_s);
  return rules_[rule.number] = std::move(rule);
}

Rule* RuleTable::find(std::int64_t number) {
  const auto found = rules_.find(number);
  return found == rules_.end() ? nullptr : &found->second;
}

std::vector<Firing> RuleTable::at_step(std::int64_t step, double step_ms) {
  std::vector<Firing> due;
  for (auto& [number, rule] : rules_) {
    if (!rule.on() || rule.next_step < 0) continue;
    const bool ahead = rule.kind() == "at";
    if (step < rule.next_step - (ahead ? steps_ahead(step_ms) : 0)) continue;
    Firing firing{number, {{"step", step}}, std::nullopt, 0, 0, false};
    if (ahead) firing.at_step = rule.next_step;
    rule.next_step =
        rule.kind() == "every" ? next_multiple(rule.spec.value("steps", std::int64_t{1}), step) : -1;
    due.push_back(std::move(firing));
  }
  return due;
}

std::vector<Firing> RuleTable::at_time(double wall_s, std::int64_t step) {
  std::vector<Firing> due;
  for (auto& [number, rule] : rules_) {
    if (!rule.on() || rule.due <= 0 || wall_s < rule.due) continue;
    rule.due = 0;
    due.push_back({number, {{"step", step}}, std::nullopt, 0, 0, false});
  }
  return due;
}

std::vector<Firing> RuleTable::on_event(const std::string& event, const Json& data, std::int64_t by) {
  std::vector<Firing> due;
  const bool measured = event == "log" || event == "eval";
  for (const auto& [number, rule] : rules_) {
    if (!rule.on() || number == by) continue;
    const bool wanted =
        rule.kind() == "on" ? rule.spec.value("event", "") == event : rule.kind() == "stop_when" && measured;
    if (wanted) due.push_back({number, data, std::nullopt, 0, 0, false});
  }
  return due;
}

std::optional<double> RuleTable::next_due() const {
  std::optional<double> next;
  for (const auto& [number, rule] : rules_)
    if (rule.on() && rule.due > 0 && (!next || rule.due < *next)) next = rule.due;
  return next;
}

void RuleTable::new_start(std::int64_t step, double wall_s, std::int64_t left) {
  for (auto& [number, rule] : rules_) {
    const std::string kind = rule.kind();
    // An at() is ordered ahead of its step: one whose step hadn't come is due again.
    const bool passed = kind != "at" || rule.spec.value("step", std::int64_t{0}) <= left;
    if (left > step && rule.called && rule.fires_once() && passed && rule.state != Rule::State::off)
      rule.end_for_good();
    if (rule.for_good) continue;
    if (kind == "at" && rule.state != Rule::State::off) {
      const bool ahead = rule.spec.value("step", std::int64_t{0}) > step;
      rule.state = ahead ? Rule::State::on : Rule::State::done;
      if (ahead) arm(rule, step, wall_s);
    } else if (rule.on() && (kind == "every" || (kind == "after" && rule.spec.contains("seconds")))) {
      arm(rule, step, wall_s);
    }
  }
}

Json RuleTable::sync_budgets() const {
  Json budgets = Json::object();
  for (const auto& [number, rule] : rules_) {
    if (!rule.on() || !rule.sync()) continue;
    const std::string event = rule.spec.value("event", "");
    const std::string topic = event == "log" ? "metrics" : event;
    budgets[topic] = std::min(budgets.value(topic, 0.0) + rule.spec.value("budget_ms", 0.0), kLongestHold_ms);
  }
  return budgets;
}

double wall_clock_s() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

std::int64_t steps_ahead(double step_ms) {
  if (!(step_ms > 0)) return kAheadSteps;
  return kAheadSteps + static_cast<std::int64_t>(std::ceil(std::min(kAhead_ms / step_ms, 1e6)));
}

}  // namespace footplate::host
