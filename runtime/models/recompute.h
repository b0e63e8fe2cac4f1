#pragma once

#include <ATen/core/Tensor.h>

#include <functional>

namespace footplate {

/// body(x), of which nothing is kept for backward but x: backward computes it once more (gradient
/// checkpointing, Chen et al. 2016). To the last bit what body(x) itself gives, gradients of what `body` uses
/// included; so `body` is a function of x and of parameters, draws nothing at random, and lives until
/// backward is over. Any thread; the precision is that of the thread (MixedPrecision). `x` needs a gradient.
at::Tensor recomputed(const at::Tensor& x, std::function<at::Tensor(const at::Tensor&)> body);

}  // namespace footplate
