#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "footplate/task.h"

namespace footplate {

/// States that forward writes (BatchNorm's statistics): every rank's come from its own samples, so after each
/// step all take their mean; a step that is skipped leaves them as they were before it. They travel with the
/// last bucket of gradients. Training thread.
class ForwardState {
 public:
  /// Those of `states` that forward writes; `row` is where their sums travel, elements_of(states) floats on
  /// the device.
  ForwardState(const std::vector<v1::State>& states, const at::Tensor& row);

  static std::int64_t elements_of(const std::vector<v1::State>& states);

  /// Before a step's first forward pass.
  void keep();
  /// Before the row is reduced. `counts`: whether this rank had samples, and forward didn't fail.
  void publish(bool counts);
  /// Where it couldn't be: this rank's own statistics go, for what keep() found.
  void put_back();
  /// After it: enqueues what they are from here on. `skip`: one float; where it is 1, what keep() found. So
  /// is a value whose sum is infinite, as that of a mask's lowest float is.
  void conclude(const at::Tensor& skip);

 private:
  std::vector<at::Tensor> values_, kept_, sums_;
  at::Tensor all_kept_, all_sums_;  ///< what kept_ and sums_ are views of
  at::Tensor count_;                ///< ranks that count, once reduced; one float
};

}  // namespace footplate
