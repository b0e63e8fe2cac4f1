#pragma once

#include <ATen/core/Tensor.h>

namespace footplate {

/// Of floats in one dimension, contiguous: one double on their device. Exact to about 1e-6: LibTorch's norm
/// of many floats adds them up as floats on a processor, which of 100 million leaves out 1 %.
at::Tensor sum_of_squares(const at::Tensor& floats);

}  // namespace footplate
