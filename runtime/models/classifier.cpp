#include "runtime/models/classifier.h"

#include <ATen/ops/conv2d.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/layer_norm.h>
#include <ATen/ops/linear.h>

#include <cmath>

#include "runtime/models/parameter_builder.h"

namespace footplate {
namespace {

constexpr std::int64_t kWideTaps = 5, kDeepTaps = 3;  ///< sides of the convolutions of a stem
constexpr std::int64_t kStemStride = 2;
constexpr double kSixProducts = 6;  ///< a product and a sum, three times: forward and backward
constexpr double kNormEpsilon = 1e-5;

std::int64_t half(std::int64_t side) {
  return (side + 1) / 2;  // with a padding of taps / 2
}

}  // namespace

/// Makes layers.
class Classifier::Maker {
 public:
  Maker(Classifier& classifier, std::uint64_t seed, at::Device where)
      : list_(classifier.parameters_), make_(seed, where, list_) {}

  Layer linear(const std::string& name, std::int64_t in, std::int64_t out, double gain = 1) {
    return made(name, {out, in}, out, in, gain);
  }
  Layer convolution(const std::string& name, std::int64_t in, std::int64_t out, std::int64_t taps) {
    return made(name, {out, in, taps, taps}, out, in * taps * taps, 1);
  }
  Layer norm(const std::string& name, std::int64_t width) {
    return {make_.filled(name + ".weight", width, 1.0), make_.filled(name + ".bias", width, 0.0)};
  }
  Layer head(const std::string& name, std::int64_t in, std::int64_t out) {
    const Layer layer = linear(name, in, out, kFirstHead);
    list_[list_.size() - 2].group = kHeads;  // its weight; the bias has no decay of its own
    return layer;
  }
  /// Returns what one sample costs.
  double stem(Set& set, const ClassifiedSet& of, const ClassifierShape& shape) {
    const std::string name = of.name + ".stem";
    set.has_images = of.shape.size() == 2;
    if (!set.has_images) {
      set.into = linear(name + ".into", of.shape[0], shape.width);
      return static_cast<double>(of.shape[0] * shape.width);
    }
    const std::int64_t channels = shape.channels, rows = half(of.shape[0]), columns = half(of.shape[1]);
    const std::int64_t left = half(rows) * half(columns);
    set.wide = convolution(name + ".wide", 1, channels, kWideTaps);
    set.deep = convolution(name + ".deep", channels, 2 * channels, kDeepTaps);
    set.into = linear(name + ".into", 2 * channels * left, shape.width);
    return static_cast<double>(rows * columns * set.wide.weight.numel() + left * set.deep.weight.numel() +
                               set.into.weight.numel());
  }

 private:
  static constexpr double kFirstHead = 0.1;  ///< all classes are about as likely at first

  Layer made(const std::string& name, at::IntArrayRef shape, std::int64_t out, std::int64_t inputs,
             double gain) {
    return {make_.normal(name + ".weight", shape, gain / std::sqrt(static_cast<double>(inputs))),
            make_.filled(name + ".bias", out, 0.0)};
  }

  std::vector<Parameter>& list_;
  ParameterBuilder make_;
};

Classifier::Classifier(const ClassifierShape& shape, const std::vector<ClassifiedSet>& sets,
                       std::uint64_t seed, at::Device where) {
  Maker make(*this, seed, where);
  norm_ = make.norm("trunk.norm", shape.width);
  first_ = make.linear("trunk.first", shape.width, shape.width);
  second_ = make.linear("trunk.second", shape.width, shape.width);
  const auto trunk = static_cast<double>(2 * shape.width * shape.width);
  for (const ClassifiedSet& of : sets) {
    Set set;
    const double stem = make.stem(set, of, shape);
    set.head = make.head(of.name + ".head", shape.width, of.classes);
    set.flops = kSixProducts * (stem + trunk + static_cast<double>(shape.width * of.classes));
    sets_.push_back(std::move(set));
  }
}

at::Tensor Classifier::logits(std::size_t set, const at::Tensor& samples) const {
  const Set& of = sets_[set];
  at::Tensor x = samples;
  if (of.has_images) {
    x = at::conv2d(x.unsqueeze(1), of.wide.weight, of.wide.bias, kStemStride, kWideTaps / 2);
    x = at::conv2d(at::gelu(x), of.deep.weight, of.deep.bias, kStemStride, kDeepTaps / 2);
    x = at::gelu(x).flatten(1);
  }
  x = at::gelu(at::linear(x, of.into.weight, of.into.bias));
  const at::Tensor normed =
      at::layer_norm(x, {x.size(1)}, norm_.weight, norm_.bias, kNormEpsilon, /*cudnn_enable=*/false);
  const at::Tensor block = at::linear(normed, first_.weight, first_.bias);
  x = x.add(at::linear(at::gelu(block), second_.weight, second_.bias));
  return at::linear(x, of.head.weight, of.head.bias);
}

}  // namespace footplate
