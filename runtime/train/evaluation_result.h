#pragma once

#include <cstdint>

namespace footplate {

/// What one evaluation found, over all ranks.
struct EvalResult {
  double loss = 0;  ///< mean over tokens
  std::int64_t tokens = 0;
  std::int64_t batches = 0;
  double seconds = 0;  ///< on this rank
};

}  // namespace footplate
