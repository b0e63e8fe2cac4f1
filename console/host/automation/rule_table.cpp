#include "console/host/automation/rule_table.h"

#include <algorithm>
#include <cmath>

namespace footplate::host {
namespace {

constexpr double kAhead_ms = 1500;       ///< the status comes twice a second; an order takes milliseconds
constexpr std::int64_t kAheadSteps = 2;  ///< at least
constexpr double kLongestHold_ms = 1000;

/// The first multiple of `every` after `step`.
std::int64_t next_multiple(std::int64_t every, std::int64_t step) {
  return (step / every + 1) * every;
}

void arm(Rule& rule, std::int64_t step, double wall_s) {
  const RuleSpec& spec = rule.spec;
  if (spec.kind == RuleKind::every) rule.next_step = next_multiple(spec.steps.value_or(1), step);
  if (spec.kind == RuleKind::at) rule.next_step = spec.step.value_or(0);
  if (spec.kind == RuleKind::after && spec.steps) rule.next_step = step + *spec.steps;
  if (spec.kind == RuleKind::after && spec.seconds) rule.due = wall_s + *spec.seconds;
}

/// After whose events training waits for a rule with sync = true.
std::optional<Topic> held_topic(RuleEvent event) {
  return event == RuleEvent::log ? Topic::metrics : from_word<Topic>(to_string(event));
}

/// The function of rule `number` is due: it gets `event`, which is of `step`.
Firing firing_of(std::int64_t number, const Json& event, std::int64_t step) {
  Firing firing;
  firing.rule = number;
  firing.event = event;
  firing.step = step;
  return firing;
}

}  // namespace

void Rule::fire_again() {
  next_step = spec.kind == RuleKind::at ? spec.step.value_or(0) : std::max<std::int64_t>(fired_at, 0);
  fired_at = -1;
}

void Rule::end_for_good() {
  state = RuleState::done;
  for_good = true;
  next_step = fired_at = -1;
  due = 0;
}

RuleStatus Rule::status() const {
  RuleStatus status;
  status.rule = number;
  status.text = spec.text;
  status.state = state;
  status.runs = runs;
  status.user = user;
  status.kind = spec.kind;
  status.why = why;
  status.sync = spec.sync;
  status.budget_ms = spec.budget_ms;
  status.line = spec.line;
  status.job = job;
  return status;
}

KeptRule Rule::record() const {
  KeptRule record;
  record.status = status();
  record.spec = spec;
  record.role = role;
  record.chunk = chunk;
  record.next_step = next_step;
  record.due = due;
  record.fired_at = fired_at;
  record.called = called;
  record.for_good = for_good;
  return record;
}

Rule Rule::from_record(const KeptRule& record) {
  Rule rule;
  rule.number = record.status.rule;
  rule.spec = record.spec;
  rule.user = record.status.user;
  rule.role = record.role;
  rule.chunk = record.chunk;
  rule.state = record.status.state;
  rule.why = record.status.why;
  rule.runs = record.status.runs;
  rule.next_step = record.next_step;
  rule.due = record.due;
  rule.fired_at = record.fired_at;
  rule.called = record.called;
  rule.for_good = record.for_good;
  return rule;
}

Rule& RuleTable::add(Rule rule, std::int64_t step, double wall_s) {
  rule.number = next_number++;
  arm(rule, step, wall_s);
  return rules_[rule.number] = std::move(rule);
}

bool RuleTable::has_no_room_for(std::size_t more) const {
  const auto on = std::ranges::count_if(rules_, [](const auto& entry) { return entry.second.on(); });
  return static_cast<std::size_t>(on) + more > kMostRules;
}

Rule* RuleTable::find(std::int64_t number) {
  const auto found = rules_.find(number);
  return found == rules_.end() ? nullptr : &found->second;
}

std::vector<Firing> RuleTable::at_step(std::int64_t step, double step_ms) {
  std::vector<Firing> due;
  for (auto& [number, rule] : rules_) {
    if (!rule.on() || rule.next_step < 0) continue;
    const bool ahead = rule.spec.kind == RuleKind::at;
    if (step < rule.next_step - (ahead ? steps_ahead(step_ms) : 0)) continue;
    Firing firing = firing_of(number, {{"step", step}}, step);
    if (ahead) firing.at_step = rule.next_step;
    rule.next_step =
        rule.spec.kind == RuleKind::every ? next_multiple(rule.spec.steps.value_or(1), step) : -1;
    due.push_back(std::move(firing));
  }
  return due;
}

std::vector<Firing> RuleTable::at_time(double wall_s, std::int64_t step) {
  std::vector<Firing> due;
  for (auto& [number, rule] : rules_) {
    if (!rule.on() || rule.due <= 0 || wall_s < rule.due) continue;
    rule.due = 0;
    due.push_back(firing_of(number, {{"step", step}}, step));
  }
  return due;
}

std::vector<Firing> RuleTable::on_event(RuleEvent event, const Json& data, std::int64_t step,
                                        std::int64_t by) {
  std::vector<Firing> due;
  const bool measured = event == RuleEvent::log || event == RuleEvent::eval;
  for (const auto& [number, rule] : rules_) {
    if (!rule.on() || number == by) continue;
    const bool wanted = rule.spec.kind == RuleKind::on ? rule.spec.event == event
                                                       : rule.spec.kind == RuleKind::stop_when && measured;
    if (wanted) due.push_back(firing_of(number, data, step));
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
    const RuleKind kind = rule.spec.kind;
    const std::int64_t its_step = rule.spec.step.value_or(0);
    // An at() is ordered ahead of its step: one whose step hadn't come is due again.
    const bool passed = kind != RuleKind::at || its_step <= left;
    if (left > step && rule.called && rule.fires_once() && passed && rule.state != RuleState::off)
      rule.end_for_good();
    if (rule.for_good) continue;
    if (kind == RuleKind::at && rule.state != RuleState::off) {
      const bool ahead = its_step > step;
      rule.state = ahead ? RuleState::on : RuleState::done;
      if (ahead) arm(rule, step, wall_s);
    } else if (rule.on() && (kind == RuleKind::every || (kind == RuleKind::after && rule.spec.seconds))) {
      arm(rule, step, wall_s);
    }
  }
}

std::map<Topic, double> RuleTable::sync_budgets() const {
  std::map<Topic, double> budgets;
  for (const auto& [number, rule] : rules_) {
    if (!rule.on() || !rule.spec.sync || !rule.spec.event) continue;
    if (const auto topic = held_topic(*rule.spec.event))
      budgets[*topic] = std::min(budgets[*topic] + rule.spec.budget_ms, kLongestHold_ms);
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
