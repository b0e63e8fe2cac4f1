#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "console/host/automation/rules_file.h"
#include "protocol/messages/event.h"

namespace footplate::host {

/// One rule of the run: its trigger, and what has become of it.
struct Rule {
  std::int64_t number = 0;
  RuleSpec spec;
  std::string user;
  Role role = Role::view;
  std::int64_t chunk = 0;  ///< whose source registers it; 0: a job's
  std::string job;         ///< the job whose script registered it; empty: a session's chunk
  RuleState state = RuleState::on;
  std::string why;  ///< it is off
  std::uint64_t runs = 0;
  int errors_in_a_row = 0;
  bool said_slow = false;
  bool said_left_out = false;   ///< since it has run last
  bool has_function = true;     ///< false: its chunk has failed when it ran again, and is tried later
  bool called = false;          ///< an order of it has called something, not only set
  bool for_good = false;        ///< it is done, and so it stays where the run passes its step again
  std::int64_t next_step = -1;  ///< every, after steps, at: when it is due
  double due = 0;               ///< after seconds: wall time since the epoch
  std::int64_t fired_at =
      -1;  ///< step at which its function was given out that hasn't ended yet; every, after, at

  bool on() const { return state == RuleState::on; }
  bool fires_once() const { return spec.kind == RuleKind::at || spec.kind == RuleKind::after; }
  bool on_schedule() const { return fires_once() || spec.kind == RuleKind::every; }

  /// Its function was given out, and nobody knows whether it ran: it is due again.
  void fire_again();
  /// It isn't due any more, whatever happens.
  void end_for_good();

  /// For rules(), and for rules.json with what only the console needs.
  RuleStatus status() const;
  KeptRule record() const;
  static Rule from_record(const KeptRule& record);
};

/// A rule's function that has to run.
struct Firing {
  std::int64_t rule = 0;
  Json event = Json::object();          ///< what its function gets
  std::int64_t step = 0;                ///< that the event is of
  std::optional<std::int64_t> at_step;  ///< its order's
  std::uint64_t hold = 0;               ///< training waits for it (docs/protocol.md, `hold`)
  int tries = 0;
  bool ordered = false;  ///< an order of it has been sent
  /// While its function runs: whose rule it is. The rule itself may be off by then, and forgotten.
  std::string user = {};
  Role role = Role::view;
};

/// All rules, and when they are due. Knows no processes; one thread.
class RuleTable {
 public:
  static constexpr std::size_t kMostRules = 256;  ///< that are on

  /// Takes a rule on at step `step`. Its number is new in this run.
  Rule& add(Rule rule, std::int64_t step, double wall_s);

  /// Whether so many more would be more than there may be.
  bool has_no_room_for(std::size_t more) const;

  Rule* find(std::int64_t number);
  std::map<std::int64_t, Rule>& all() { return rules_; }
  const std::map<std::int64_t, Rule>& all() const { return rules_; }

  /// every, after and at, now that the run is at `step`. `step_ms`: how far ahead an at() has to run.
  std::vector<Firing> at_step(std::int64_t step, double step_ms);
  std::vector<Firing> at_time(double wall_s, std::int64_t step);
  /// on() and run.stop_when: `event` at `step`, of which functions get `data`. `by`: the rule whose order or
  /// warning it is; it doesn't trigger itself.
  std::vector<Firing> on_event(RuleEvent event, const Json& data, std::int64_t step, std::int64_t by = 0);

  /// The earliest `due`; nothing: no rule waits for the clock.
  std::optional<double> next_due() const;

  /// A new start of the run, at `step`: what is behind it is done, what is ahead is on again. Where ckpt.load
  /// went back to it from step `left`, what has called something on the way stays done: it may be what led
  /// to the load, and would lead there for ever.
  void new_start(std::int64_t step, double wall_s, std::int64_t left = 0);

  /// By topic, how long training waits for rules with sync = true, in milliseconds.
  std::map<Topic, double> sync_budgets() const;

  std::int64_t next_number = 1;

 private:
  std::map<std::int64_t, Rule> rules_;
};

/// Seconds since the epoch.
double wall_clock_s();

/// How many steps before its own an at() is run, so that its order is agreed on in time.
std::int64_t steps_ahead(double step_ms);

}  // namespace footplate::host
