#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "runtime/state/state_table.h"

namespace footplate {

/// The state of so many million parameters with AdamW, in as many tensors as a transformer of a hundred
/// million has.
struct LargeState {
  explicit LargeState(std::size_t millions)
      : tensors(kTensors, std::vector<float>(millions * 1'000'000 * kFloatsOfParameter / kTensors)) {
    float next = 0;
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      for (float& value : tensors[i]) value = next += 0.37F;
      const std::size_t size = tensors[i].size() * sizeof(float);
      table.add({"tensor/" + std::to_string(i),
                 DataType::float32,
                 {static_cast<std::int64_t>(tensors[i].size())},
                 Placement::replicated,
                 tensors[i].data(),
                 size});
      bytes += size;
    }
  }
  static constexpr std::size_t kTensors = 300;
  static constexpr std::size_t kFloatsOfParameter = 3;  ///< itself, and AdamW's two

  std::vector<std::vector<float>> tensors;
  StateTable table;
  std::size_t bytes = 0;
};

}  // namespace footplate
