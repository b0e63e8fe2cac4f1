#pragma once

#include <cstddef>
#include <vector>

#include "runtime/models/parameter.h"
#include "runtime/state/ports.h"
#include "runtime/train/training.h"

namespace footplate {

/// What a checkpoint needs of the step whose parameters are evaluated beside training, for as long as they
/// are: training goes on meanwhile, and the evaluation may turn out to be the new best. Only rank 0, which
/// writes checkpoints, holds tensors. The parameters are those that the evaluation itself works on, and only
/// the rest is copied, to the host's memory. Training thread.
class EvaluatedState {
 public:
  /// `parameters` outlive this unchanged. May throw: the copies take memory.
  EvaluatedState(const Training& training, const std::vector<Parameter>& parameters);

  const TrainingProgress progress;
  const Settings settings;
  const RunMoment moment;

  const StateTable& state() const { return state_; }

 private:
  StateTable state_;
  std::vector<std::vector<std::byte>> copies_;  ///< what its other entries are of
};

}  // namespace footplate
