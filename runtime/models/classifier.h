#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/models/parameter.h"

namespace footplate {

/// A data set as a classifier sees it.
struct ClassifiedSet {
  std::string name;
  std::vector<std::int64_t> shape;  ///< of a sample: [rows, columns] of an image, or [numbers]
  std::int64_t classes = 2;
};

struct ClassifierShape {
  std::int64_t width = 128;    ///< of the trunk
  std::int64_t channels = 16;  ///< of a stem's first convolution; the second has twice as many
};

/// A classifier of several data sets: each has a stem and a head of its own, and all share a trunk. The stem
/// of images is two convolutions of stride 2 and a linear layer, that of tables a linear layer; the trunk is
/// a residual block of linear layers; a head is one linear layer.
class Classifier {
 public:
  /// The group of the heads' parameters.
  static constexpr const char* kHeads = "heads";

  /// Initial parameters are a function of `seed`.
  Classifier(const ClassifierShape& shape, const std::vector<ClassifiedSet>& sets, std::uint64_t seed,
             at::Device where);

  const std::vector<Parameter>& parameters() const { return parameters_; }

  /// Of samples [batch, …] of one set, about as large as 1: [batch, classes].
  at::Tensor logits(std::size_t set, const at::Tensor& samples) const;

  /// Of forward and backward of one sample.
  double flops_per_sample(std::size_t set) const { return sets_[set].flops; }

 private:
  struct Layer {
    at::Tensor weight, bias;
  };
  struct Set {
    bool has_images = false;
    Layer wide, deep;  ///< convolutions of a stem of images
    Layer into;        ///< the trunk
    Layer head;
    double flops = 0;
  };
  class Maker;

  std::vector<Parameter> parameters_;
  Layer norm_, first_, second_;  ///< of the trunk
  std::vector<Set> sets_;
};

}  // namespace footplate
