#pragma once

#include <string>

#include "protocol/json.h"
#include "protocol/result.h"

namespace footplate {

/// A setting that is set and waits for the next start.
struct PendingSetting {
  std::string name;
  Json value;
  Json at_start;  ///< what is in force
  std::string source;
};
Json to_json(const PendingSetting& pending);
Result<void> read_json(const Json& json, PendingSetting& pending);

}  // namespace footplate
