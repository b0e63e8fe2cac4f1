#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "protocol/json.h"
#include "protocol/result.h"
#include "runtime/base/clock.h"
#include "runtime/watch/messages.h"

namespace footplate {

/// What rank 0 tells a process that joins the run (World::grow).
struct Welcome {
  Json settings = Json::object();  ///< in force, as Settings::to_json
  Json at_start = Json::object();  ///< kept_at_start()
  Json store = Json::object();
  std::vector<Committed> pending;
  std::uint64_t applied = 0;       ///< how many orders,
  std::uint64_t last_applied = 0;  ///< and the id of the last one
  message::HandOver participant;
  int wanted = 1;  ///< RankNumbers::wanted
  int recoveries = 0;
  std::string started;  ///< RunInfo::started
  double ran_s = 0;     ///< since the run's start

  /// When the run began that has lasted that long now, as its limits count it.
  SteadyClock::time_point run_start() const {
    return SteadyClock::now() -
           std::chrono::duration_cast<SteadyClock::duration>(std::chrono::duration<double>(ran_s));
  }
};
std::string to_text(const Welcome& welcome);
/// Errors (usage): no JSON, a field of the wrong type.
Result<Welcome> welcome_from_text(const std::string& text);

}  // namespace footplate
