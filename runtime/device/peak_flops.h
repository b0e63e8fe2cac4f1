#pragma once

#include <optional>
#include <string_view>

#include "runtime/device/mixed_precision.h"

namespace footplate {

/// The most that a device of that name computes, in TFLOP/s: dense, by its data sheet; bf16 with sums in
/// float32, float32 without TF32, as LibTorch computes it. Nothing: its name isn't known here.
std::optional<double> peak_tflops(std::string_view device_name, Precision precision);

}  // namespace footplate
