#pragma once

#include <chrono>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "console/launch/start/file_tail.h"
#include "console/launch/supervise/notifier.h"
#include "protocol/messages/event.h"

namespace footplate {

/// What of a run's events needs a person, for --notify: warnings of the kinds that do (alarms.cpp has the
/// table), a rank that is silent for a minute, evaluations that fail. Each kind at most once a minute. Reads
/// what is appended to events.jsonl. One thread.
class Alarms {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr std::chrono::minutes kBetween{1};   ///< notices of one kind
  static constexpr std::chrono::minutes kPatience{1};  ///< with a rank that is silent

  /// From here on. `run`: its name.
  Alarms(const std::filesystem::path& run_directory, std::string run);

  /// What has come since the last call.
  std::vector<Notice> take(Clock::time_point now);

  /// One event, as take() reads it.
  void add(const Event& event, Clock::time_point now);

 private:
  struct Silent {
    std::string text;
    Clock::time_point since;
  };
  void tell(const std::string& kind, const std::string& text, std::int64_t step, Clock::time_point now);
  void handle(const RankChange& change, Clock::time_point now);

  const std::string run_;
  FileTail events_;
  std::int64_t step_ = 0;         ///< of the last event that has one
  std::map<int, Silent> silent_;  ///< by rank; not told yet
  std::map<std::string, Clock::time_point> told_;
  std::vector<Notice> notices_;
};

}  // namespace footplate
