#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "protocol/json.h"
#include "protocol/schema.h"
#include "protocol/settings.h"

namespace footplate::host {

/// What the console knows of the run: rank 0's last words, and how long ago they were.
class RunView {
 public:
  using Clock = std::chrono::steady_clock;

  /// Rank 0 unheard of for longer than `silent_s` is named as stalled.
  explicit RunView(double silent_s) : silent_s_(silent_s) {}

  /// Errors: malformed schema or settings, another protocol version.
  Result<void> hello(const Json& message, Clock::time_point now);
  void status(const Json& status, Clock::time_point now);
  void settings(const Json& changed);
  void metrics(const Json& latest);
  /// Training has come to `step`, by an event: the next status may be two seconds away.
  void reached(std::int64_t step);
  void comm_report(const Json& report, Clock::time_point now);
  /// An applied order: what it put into store.
  void ordered(const Json& report);
  void heard(Clock::time_point now) { heard_ = now; }
  Clock::time_point heard() const { return heard_; }
  void ended(const Json& result);

  bool known() const { return schema_.has_value(); }
  const Json& run() const { return run_; }
  const Schema& schema() const { return *schema_; }
  const Json& schema_json() const { return schema_json_; }
  const Settings& settings() const { return settings_; }
  /// What has been set and waits for the next start: a list of {name, value, at_start, source}.
  Json pending() const;
  const Json& store() const { return store_; }
  const Json& metrics() const { return metrics_; }
  const Json& status() const { return status_; }  ///< the last one, as it came
  const std::optional<Json>& result() const { return result_; }
  std::int64_t step() const;
  /// What comm.report() shows, and when it came.
  const Json& comm_report() const { return comm_report_; }
  Clock::time_point comm_report_time() const { return comm_report_time_; }
  /// When the last status came.
  Clock::time_point status_time() const { return status_time_; }

  /// What to say of rank 0 where it is silent, as silence_note; else empty.
  std::string silence(Clock::time_point now) const;

  /// The last status with its ages advanced to `now`, and rank 0 named where it is silent.
  Json status_at(Clock::time_point now) const;

 private:
  double silent_s_;
  Json run_ = Json::object();
  Json schema_json_;
  std::optional<Schema> schema_;
  Settings settings_;
  Json at_start_ = Json::object();  ///< of settings that apply at the next start: name and value now in force
  Json status_ = Json::object();
  Json metrics_ = Json::object();
  Json store_ = Json::object();
  Json comm_report_ = Json::object();
  std::optional<Json> result_;
  Clock::time_point status_time_{};  ///< when status_ came
  Clock::time_point comm_report_time_{};
  Clock::time_point heard_{};  ///< when rank 0 last said anything
};

/// "rank 0 silent for 2.3 s, last seen at step 812 in reduce (all_reduce #4471, 842,499 elements)"
std::string silence_note(const Json& rank, double silent_s);

}  // namespace footplate::host
