#pragma once

#include <ATen/core/Tensor.h>

#include "runtime/device/compute_device.h"

namespace footplate {

/// The learning rate of the steps to come, where an optimizer's kernels read it: on a device it has a place
/// of its own there, which a recorded step reads.
class LearningRate {
 public:
  explicit LearningRate(const ComputeDevice& device);

  void set(double rate);

  /// Calls `kernel` with the rate times `factor`: a double on the host, one float of the device elsewhere.
  template <class Kernel>
  void with(double factor, const Kernel& kernel) const {
    if (on_host_)
      kernel(rate_ * factor);
    else
      kernel(factor == 1 ? on_device_ : on_device_.mul(factor));
  }
  /// The rate times `factor`, as one float on the device.
  at::Tensor tensor(double factor) const { return on_device_.mul(factor); }

 private:
  const bool on_host_;
  double rate_ = 0;
  at::Tensor on_device_;  ///< the same
};

}  // namespace footplate
