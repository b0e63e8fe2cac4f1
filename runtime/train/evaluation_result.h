#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "protocol/messages/event.h"
#include "runtime/tasks/task_sums.h"

namespace footplate {

/// What a rank has found by itself, on its own part of the samples.
struct LocalEvaluation {
  double loss = 0;      ///< mean over the weight
  TaskMetrics metrics;  ///< as EvalResult has them
};

/// What one evaluation found, over all ranks.
struct EvalResult {
  double loss = 0;  ///< mean over the weight (tokens, images, …)
  EvaluatedOn on = EvaluatedOn::batches;
  TaskMetrics metrics;  ///< what the task declares besides; of several data sets also each one's loss
  std::int64_t tokens = 0;
  std::int64_t batches = 0;  ///< of eval.batch_size, over all ranks together
  std::int64_t batches_wanted = 0;
  double seconds = 0;                   ///< on this rank
  std::optional<double> waited_s = {};  ///< by training, for one beside it
  int retries = 0;                      ///< with smaller batches, after a failure
  std::string reason;                   ///< of the last failure; empty: there was none

  /// Ranks that failed again and again are left out.
  bool partial() const { return batches < batches_wanted; }
};

}  // namespace footplate
