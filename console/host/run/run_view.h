#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "console/host/run/pending_setting.h"
#include "protocol/messages/link_messages.h"
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
  Result<void> hello(const RankZeroHello& hello, Clock::time_point now);
  void status(const RunStatus& status, Clock::time_point now);
  void settings(const SettingsUpdate& update);
  void metrics(const LoggedMetrics& logged);
  /// Training has come to `step`, by an event: the next status may be two seconds away.
  void reached(std::int64_t step);
  /// An applied order: what it put into store.
  void ordered(const OrderReport& report);
  void heard(Clock::time_point now) { heard_ = now; }
  Clock::time_point heard() const { return heard_; }
  void ended(const RunResult& result);

  bool known() const { return schema_.has_value(); }
  const RunIdentity& run() const { return run_; }
  const Schema& schema() const { return *schema_; }
  const Json& schema_json() const { return schema_json_; }
  const Settings& settings() const { return settings_; }
  /// What has been set and waits for the next start.
  std::vector<PendingSetting> pending() const;
  const Json& store() const { return store_; }
  /// The latest value of each metric.
  const LoggedMetrics& metrics() const { return metrics_; }
  const RunStatus& status() const { return status_; }  ///< the last one, as it came
  const std::optional<RunResult>& result() const { return result_; }
  std::int64_t step() const { return status_.step; }
  int world_size() const;
  /// When the last status came.
  Clock::time_point status_time() const { return status_time_; }

  /// What to say of rank 0 where it is silent, as silence_note; else empty.
  std::string silence(Clock::time_point now) const;

  /// The last status with its ages advanced to `now`, and rank 0 named where it is silent.
  RunStatus status_at(Clock::time_point now) const;

 private:
  double silent_s_;
  RunIdentity run_;
  Json schema_json_;
  std::optional<Schema> schema_;
  Settings settings_;
  Json at_start_ = Json::object();  ///< of settings that apply at the next start: name and value now in force
  RunStatus status_;
  LoggedMetrics metrics_;
  Json store_ = Json::object();
  std::optional<RunResult> result_;
  Clock::time_point status_time_{};  ///< when status_ came
  Clock::time_point heard_{};        ///< when rank 0 last said anything
};

/// "rank 0 silent for 2.3 s, last seen at step 812 in reduce (all_reduce #4471, 842,499 elements)"
std::string silence_note(const RankStatus& rank, double silent_s);

}  // namespace footplate::host
