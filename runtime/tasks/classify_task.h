#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "footplate/task.h"
#include "runtime/data/labelled_set.h"
#include "runtime/models/classifier.h"

namespace footplate {

/// A classifier of several labelled data sets at once: a stem and a head for each, one trunk for all
/// (docs/classify.md). A batch has samples [batch, …], bytes of images or numbers as they are in the file,
/// and labels [batch].
class ClassifyTask final : public v1::Task {
 public:
  static v1::Declaration declare();
  /// Throws TaskError: a data set that isn't installed, what LabelledSet::open() says.
  explicit ClassifyTask(const v1::Host& host);

  std::vector<v1::Parameter> parameters() override { return model_.parameters(); }
  std::vector<v1::Group> groups() override;
  std::vector<v1::State> state() override;
  std::vector<v1::DataSet> data() override;
  v1::Batch load(const v1::Samples& samples) override;
  /// Cross-entropy, with task.smoothing.
  at::Tensor loss(const v1::Batch& batch, v1::Sums& sums) override;
  /// Cross-entropy alone.
  at::Tensor evaluate(const v1::Batch& batch, v1::Sums& sums) override;
  void changed(const v1::Values& now, std::int64_t step) override;
  std::string call(const std::string& action, const v1::Arguments& arguments, std::int64_t step) override;
  double flops_per_weight() const override { return model_.flops_per_sample(0); }

 private:
  /// What samples are scaled by: of what is trained on.
  struct Scale {
    at::Tensor mean, deviation;  ///< [1], or one for each column
  };

  std::vector<Scale> make_scales(at::Device where) const;
  at::Tensor logits(const v1::Batch& batch) const;
  std::string confusion(std::size_t set) const;

  const std::vector<LabelledSet> sets_;
  const std::vector<Scale> scales_;
  const Classifier model_;
  double smoothing_ = 0;
};

}  // namespace footplate
