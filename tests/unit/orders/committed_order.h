#pragma once

#include <utility>
#include <vector>

#include "runtime/orders/forecast.h"

namespace footplate::testing {

/// Order `id`, agreed on for `step`: makes `calls`, or sets eval.batches to its id.
inline Committed agreed(std::uint64_t id, std::int64_t step, bool targeted, std::vector<Call> calls = {}) {
  Committed committed;
  committed.order.id = id;
  committed.order.calls = std::move(calls);
  if (committed.order.calls.empty())
    committed.order.changes = {{"eval.batches", static_cast<std::int64_t>(id), {}}};
  committed.step = step;
  committed.targeted = targeted;
  return committed;
}

}  // namespace footplate::testing
