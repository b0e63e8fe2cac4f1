#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "protocol/messages/event.h"

namespace footplate {

/// What one evaluation found, over all ranks.
struct EvalResult {
  double loss = 0;  ///< mean over the weight (tokens, images, …)
  EvaluatedOn on = EvaluatedOn::batches;
  std::map<std::string, double> metrics;  ///< what the task declares besides
  std::int64_t tokens = 0;
  std::int64_t batches = 0;  ///< of eval.batch_size, over all ranks together
  std::int64_t batches_wanted = 0;
  double seconds = 0;  ///< on this rank
  int retries = 0;     ///< with smaller batches, after a failure
  std::string reason;  ///< of the last failure; empty: there was none

  /// Ranks that failed again and again are left out.
  bool partial() const { return batches < batches_wanted; }
};

}  // namespace footplate
