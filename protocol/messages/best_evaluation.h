#pragma once

#include <cstdint>
#include <string>

#include "protocol/json.h"

namespace footplate {

/// A run's best evaluation: the lowest loss of the whole evaluations on eval.batches that led to its newest
/// state. Logs, events, status(), the report, `footplate inspect` and ckpt.load("best") all mean this one.
struct BestEvaluation {
  double loss = 0;          ///< nats
  std::int64_t step = 0;    ///< of the parameters
  std::string branch = {};  ///< that was at this step

  bool operator==(const BestEvaluation&) const = default;
};
Json to_json(const BestEvaluation& best);
Result<void> read_json(const Json& json, BestEvaluation& best);

}  // namespace footplate
