#pragma once

#include <cstdint>

#include "protocol/order.h"

namespace footplate {

/// An order that all ranks agreed on, waiting for its step.
struct Committed {
  Order order;
  std::int64_t step = 0;
  /// Its own at_step is that step. An order without one applies at once where training is held.
  bool targeted = false;
};

}  // namespace footplate
