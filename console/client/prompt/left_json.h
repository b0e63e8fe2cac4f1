#pragma once

#include <cstdint>
#include <string>

#include "protocol/json.h"

namespace footplate {

/// When this user last looked at a run, and where it was then. Kept in the user's state folder.
struct Left {
  std::string time;         ///< ISO, UTC
  std::string first_start;  ///< when the run began: another one may have taken its place
  std::int64_t step = 0;
  double loss = 0;  ///< NaN where unknown
};
Json to_json(const Left& left);

/// Fields of another type are as in a Left that nobody filled; without a loss it is unknown.
Left left_from_json(const Json& json);

}  // namespace footplate
