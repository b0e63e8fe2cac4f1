#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "protocol/result.h"
#include "runtime/checkpoint/safetensors.h"
#include "runtime/checkpoint/tensor.h"

namespace footplate {

// Tensors that are cut among the files of a checkpoint: docs/checkpoints.md, "Slices".

/// Some elements of one of a list of tensors.
struct TensorSlice {
  std::size_t tensor = 0;  ///< which one of the list
  std::int64_t first = 0, count = 0;
  bool operator==(const TensorSlice&) const = default;
};

/// Part `part` of `parts` of these tensors: about as many bytes as any other part. Tensors of less than 1 MiB
/// are never cut. Together the parts are everything, once. May be empty. `tensors` have valid shapes.
std::vector<TensorSlice> slices_of_part(std::span<const TensorSpec> tensors, int part, int parts);

/// Says in a header's metadata which of `tensors` are slices, and of what.
void add_slices(std::span<const TensorView> tensors, std::map<std::string, std::string>& metadata);

/// What add_slices() has said, for each of the header's tensors. Errors (failed): anything that can't be
/// true.
Result<void> read_slices(SafetensorsHeader& header);

}  // namespace footplate
