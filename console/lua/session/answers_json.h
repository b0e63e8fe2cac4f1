#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "protocol/messages/event.h"

namespace footplate::lua {

// What the console answers a script's process, where that has no struct in protocol/messages/
// (requests_json.h has what is asked).

using footplate::to_json;  // those here would hide them

/// To a request that only does something.
struct Done {};

/// To `order`: the console has taken it.
struct OrderTaken {
  std::string ref;
};

/// To `wait_answer`: what the person at the client says.
struct PersonAnswer {
  bool yes = false;
};

/// To `rule`.
struct RuleTaken {
  std::int64_t rule = 0;  ///< its number
};

/// To `wait_rules`: in their order; 0 where a rule was dropped.
struct RulesTaken {
  std::vector<std::int64_t> numbers;
};

/// To `wait_step`, `wait_event` and `wait_seconds`.
struct PlaceReached {
  std::int64_t step = 0;
  Json event;              ///< what it tells
  bool timed_out = false;  ///< neither came
};

/// One of `pending`: a setting that waits for the next start.
struct PendingSetting {
  std::string name;
  Json value;
  Json at_start;  ///< what is in force
  std::string source;
};
Json to_json(const PendingSetting& setting);

/// To `wait_lines`.
struct LoggedLines {
  std::uint64_t next = 0;  ///< what to ask for after these
  std::vector<LoggedMetrics> lines;
};

/// What nccl.measure has begun.
struct MeasurementBegun {
  std::int64_t last = 0;  ///< step that it measures
};

/// An answer of the console as a T: one of the structs here or in protocol/messages/, or a list of them.
/// Error (usage): a field of the wrong type.
template <class T>
Result<T> read_answer(const Json& json);

}  // namespace footplate::lua
