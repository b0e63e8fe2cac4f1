#include "runtime/models/rvq_codec.h"

#include <ATen/ops/conv1d.h>
#include <ATen/ops/conv_transpose1d.h>
#include <ATen/ops/gelu.h>

#include <cmath>

#include "runtime/models/parameter_builder.h"

namespace footplate {
namespace {

constexpr std::int64_t kStep = 4;  ///< of each strided convolution; two of them make kStride
static_assert(kStep * kStep == RvqCodec::kStride);
constexpr std::int64_t kTaps = 2 * kStep;  ///< of a strided convolution: neighbours overlap by half
constexpr std::int64_t kUnitTaps = 3;
/// At first the output is near zero: the error is the power of the signal.
constexpr double kFirstOutput = 0.01;

}  // namespace

/// Makes convolutions, and counts what they cost.
class RvqCodec::Maker {
 public:
  Maker(RvqCodec& codec, std::uint64_t seed, at::Device where)
      : codec_(codec), make_(seed, where, codec.parameters_) {}

  /// `every`: it is applied once in so many samples of audio.
  Convolution convolution(const std::string& name, std::int64_t in, std::int64_t out, std::int64_t taps,
                          std::int64_t every, double gain = 1) {
    return made(name, {out, in, taps}, out, gain / std::sqrt(static_cast<double>(in * taps)), every);
  }
  /// Each of its inputs adds to as many outputs as it has taps, each output has kTaps / kStep inputs.
  Convolution transposed(const std::string& name, std::int64_t in, std::int64_t out, std::int64_t every,
                         double gain = 1) {
    return made(name, {in, out, kTaps}, out, gain / std::sqrt(static_cast<double>(in * kTaps / kStep)),
                every);
  }
  Unit unit(const std::string& name, std::int64_t width, std::int64_t every) {
    return {.wide = convolution(name + ".wide", width, width, kUnitTaps, every),
            .narrow = convolution(name + ".narrow", width, width, 1, every)};
  }

 private:
  Convolution made(const std::string& name, at::IntArrayRef shape, std::int64_t out, double deviation,
                   std::int64_t every) {
    Convolution one{make_.normal(name + ".weight", shape, deviation), make_.filled(name + ".bias", out, 0.0)};
    constexpr double kForwardAndBackward = 6;  // a product and a sum, three times
    codec_.flops_per_sample_ +=
        kForwardAndBackward * static_cast<double>(one.weight.numel()) / static_cast<double>(every);
    return one;
  }

  RvqCodec& codec_;
  ParameterBuilder make_;
};

RvqCodec::RvqCodec(const CodecShape& shape, std::uint64_t seed, at::Device where) {
  Maker make(*this, seed, where);
  const std::int64_t width = shape.width, wide = 2 * shape.width;
  down1_ = make.convolution("encoder.down1", 1, width, kTaps, kStep);
  down_unit1_ = make.unit("encoder.unit1", width, kStep);
  down2_ = make.convolution("encoder.down2", width, wide, kTaps, kStride);
  down_unit2_ = make.unit("encoder.unit2", wide, kStride);
  to_vectors_ = make.convolution("encoder.out", wide, shape.vector_width, kUnitTaps, kStride);
  from_vectors_ = make.convolution("decoder.in", shape.vector_width, wide, kUnitTaps, kStride);
  up_unit1_ = make.unit("decoder.unit1", wide, kStride);
  up1_ = make.transposed("decoder.up1", wide, width, kStride);
  up_unit2_ = make.unit("decoder.unit2", width, kStep);
  up2_ = make.transposed("decoder.up2", width, 1, kStep, kFirstOutput);
}

at::Tensor RvqCodec::encode(const at::Tensor& audio) const {
  at::Tensor x = down(down1_, audio.unsqueeze(1));
  x = forward(down_unit1_, x);
  x = forward(down_unit2_, down(down2_, x));
  x = at::conv1d(at::gelu(x), to_vectors_.weight, to_vectors_.bias, /*stride=*/1, /*padding=*/kUnitTaps / 2);
  return x.transpose(1, 2).reshape({-1, x.size(1)});
}

at::Tensor RvqCodec::decode(const at::Tensor& vectors, std::int64_t batch) const {
  at::Tensor x = vectors.view({batch, -1, vectors.size(1)}).transpose(1, 2);
  x = at::conv1d(x, from_vectors_.weight, from_vectors_.bias, /*stride=*/1, /*padding=*/kUnitTaps / 2);
  x = forward(up_unit1_, x);
  x = forward(up_unit2_, up(up1_, x));
  return up(up2_, at::gelu(x)).squeeze(1);
}

at::Tensor RvqCodec::forward(const Unit& unit, const at::Tensor& x) {
  const at::Tensor wide =
      at::conv1d(at::gelu(x), unit.wide.weight, unit.wide.bias, /*stride=*/1, /*padding=*/kUnitTaps / 2);
  return x.add(at::conv1d(at::gelu(wide), unit.narrow.weight, unit.narrow.bias));
}

at::Tensor RvqCodec::down(const Convolution& convolution, const at::Tensor& x) {
  return at::conv1d(x, convolution.weight, convolution.bias, kStep, /*padding=*/kStep / 2);
}

at::Tensor RvqCodec::up(const Convolution& convolution, const at::Tensor& x) {
  return at::conv_transpose1d(x, convolution.weight, convolution.bias, kStep, /*padding=*/kStep / 2);
}

}  // namespace footplate
