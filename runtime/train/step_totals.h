#pragma once

#include <cstdint>

#include "runtime/train/phase_timer.h"

namespace footplate {

/// What has been trained so far, or since something: metrics are means of it.
struct StepTotals {
  PhaseTimes times;
  std::int64_t steps = 0;
  std::int64_t tokens = 0;  ///< of all ranks

  StepTotals since(const StepTotals& before) const {
    return {times.since(before.times), steps - before.steps, tokens - before.tokens};
  }
};

}  // namespace footplate
