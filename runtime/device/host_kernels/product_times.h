#pragma once

#include <string>

#include "protocol/result.h"

namespace footplate {

/// How long the products of a few layers take with each library that run.blas names, on one thread.
struct ProductTimes {
  double mkl_ms = 0;
  double openblas_ms = 0;
  double ratio = 0;       ///< OpenBLAS's time, divided by MKL's: the median of neighbouring measurements
  std::string openblas;   ///< "OpenBLAS 0.3.34 (SkylakeX)"
  std::string automatic;  ///< the value of run.blas that "auto" comes to: "mkl", "openblas"
};

/// Takes about a second; MKL computes products afterwards. Error (usage): there is no OpenBLAS. Where nothing
/// else computes.
Result<ProductTimes> time_products();

}  // namespace footplate
