#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "console/client/link/console_lines_json.h"

namespace footplate {

/// Events on their way above a prompt, at a pace that a person can read: metrics once a second (the latest),
/// at most kLinesASecond other lines, and a count of what was left out.
class EventFeed {
 public:
  using Clock = std::chrono::steady_clock;

  /// Orders of `session` are confirmed where they were given and not told again.
  void own_session(std::string session) { session_ = std::move(session); }
  void show_metrics(bool on) { metrics_on_ = on; }

  void push(const Event& event, Clock::time_point now);
  void push(const UnknownEvent& event, Clock::time_point now);

  /// Lines to show now, each with its newline; empty for none.
  std::string take(Clock::time_point now);

  /// When take() has something although no event comes.
  std::optional<Clock::time_point> due() const;

  static constexpr int kLinesASecond = 40;

 private:
  void add_line(const std::string& text, Clock::time_point now);

  std::string session_;
  bool metrics_on_ = true;
  std::string lines_;
  std::string metric_;  ///< the latest that hasn't been shown
  Clock::time_point metric_due_{};
  Clock::time_point second_{};  ///< in which these were shown
  int shown_ = 0;
  std::uint64_t left_out_ = 0;  ///< by us, and by the console where we read too slowly
};

}  // namespace footplate
