#pragma once

#include <c10/core/Device.h>
#include <c10/core/ScalarType.h>

#include <array>
#include <string_view>
#include <utility>

#include "protocol/messages/enum_words.h"

namespace footplate {

/// In what matrix products, attention and what lies between them are computed, and in what matrices are kept
/// (train.param_dtype). Gradients, the residual stream, normalisation, the loss and the optimizer are float32
/// in either case.
enum class Precision { fp32, bf16 };
template <>
struct EnumWords<Precision> {
  static constexpr std::array kAll{std::pair{Precision::fp32, std::string_view("fp32")},
                                   std::pair{Precision::bf16, std::string_view("bf16")}};
};

/// While it lives, this thread computes in that precision on that device: around forward, not backward, which
/// follows what forward has done.
///
/// LibTorch's autocast, not casts written into the models: it knows for each operation which precision it
/// bears, casts each parameter once between two of these, and gives every parameter its gradient in float32,
/// so that micro-batches add up and ranks reduce without loss. bf16 has float32's range: no loss scaling.
class MixedPrecision {
 public:
  MixedPrecision(Precision precision, at::Device where);
  ~MixedPrecision();
  /// Of this thread, on that device.
  static Precision now(at::Device where);

  MixedPrecision(const MixedPrecision&) = delete;
  MixedPrecision& operator=(const MixedPrecision&) = delete;

 private:
  const at::DeviceType type_;
  const bool was_enabled_;
  const at::ScalarType was_;
};

}  // namespace footplate
