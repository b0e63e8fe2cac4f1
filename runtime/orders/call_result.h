#pragma once

#include <cstdint>
#include <variant>

#include "protocol/messages/event.h"
#include "protocol/messages/run_result.h"

namespace footplate {

/// Of actions that are done at once.
struct DoneAtStep {
  std::int64_t step = 0;
};
/// guard.repair: all ranks have the state of `source`.
struct StateRepaired {
  std::int64_t step = 0;
  int source = 0;
};
Result<void> read_json(const Json& json, StateRepaired& repaired);
/// nccl.rebuild.
struct CommunicatorsRenewed {
  std::int64_t step = 0;
  double seconds = 0;
};
/// nccl.measure, profile.now: which steps are measured.
struct MeasurementBegun {
  std::int64_t first = 0;
  std::int64_t steps = 0;
  std::int64_t last = 0;
};

/// Of an action that a task declares: what it answered.
struct TaskAnswer {
  Json value;
};

/// What an action gives to whoever called it.
using CallResult =
    std::variant<std::monostate, DoneAtStep, StateRepaired, CommunicatorsRenewed, MeasurementBegun,
                 EvaluationResult, SaveResult, LoadTarget, NcclMeasurement, TaskAnswer>;
/// As a call report has it; null: nothing.
Json to_json(const CallResult& result);

}  // namespace footplate
