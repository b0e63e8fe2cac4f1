#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/models/parameter.h"

namespace footplate {

struct CodecShape {
  std::int64_t width = 48;         ///< channels at a quarter of the rate; twice as many at a sixteenth
  std::int64_t vector_width = 64;  ///< of what stands for kStride samples of audio
};

/// A convolutional autoencoder of audio in one channel (SoundStream's shape, Zeghidour et al. 2021, in
/// small): two strided convolutions with a residual unit each, and their mirror image. What lies between, a
/// vector for every kStride samples, is the caller's to quantise. Audio of any length that kStride divides.
class RvqCodec {
 public:
  static constexpr std::int64_t kStride = 16;

  /// Initial parameters are a function of `seed`.
  RvqCodec(const CodecShape& shape, std::uint64_t seed, at::Device where);

  const std::vector<Parameter>& parameters() const { return parameters_; }

  /// [batch, length] to [batch * length / kStride, vector_width], and back.
  at::Tensor encode(const at::Tensor& audio) const;
  at::Tensor decode(const at::Tensor& vectors, std::int64_t batch) const;

  /// Of forward and backward.
  double flops_per_sample() const { return flops_per_sample_; }

 private:
  struct Convolution {
    at::Tensor weight, bias;
  };
  /// Two convolutions beside a short cut.
  struct Unit {
    Convolution wide, narrow;
  };
  class Maker;

  static at::Tensor forward(const Unit& unit, const at::Tensor& x);
  static at::Tensor down(const Convolution& convolution, const at::Tensor& x);
  static at::Tensor up(const Convolution& convolution, const at::Tensor& x);

  std::vector<Parameter> parameters_;
  double flops_per_sample_ = 0;
  Convolution down1_, down2_, to_vectors_, from_vectors_, up1_, up2_;
  Unit down_unit1_, down_unit2_, up_unit1_, up_unit2_;
};

}  // namespace footplate
