#pragma once

#include "footplate/task.h"
#include "runtime/data/corpus.h"
#include "runtime/models/gpt.h"

namespace footplate {

/// A byte-level language model on a text corpus. A sample is model.context bytes and the one after
/// them: in training from a random place, held out from consecutive windows that don't overlap.
class TextTask final : public v1::Task {
 public:
  static v1::Declaration declare();
  /// Throws TaskError: a missing corpus, one that is too short, heads that don't divide the width.
  explicit TextTask(const v1::Host& host);

  std::vector<v1::Parameter> parameters() override;
  std::vector<v1::Group> groups() override;
  std::vector<v1::DataSet> data() override;
  v1::Batch load(const v1::Samples& samples) override;
  at::Tensor loss(const v1::Batch& batch, v1::Sums& sums) override;
  at::Tensor evaluate(const v1::Batch& batch, v1::Sums& sums) override;
  void recompute(bool on) override { model_.recompute(on); }
  bool can_recompute() const override { return true; }
  bool can_be_recorded() const override { return true; }
  double flops_per_weight() const override { return model_.flops_per_token(); }
  std::string runs_on(bool bf16) const override;

 private:
  std::int64_t context_;
  Corpus corpus_;
  Gpt model_;
};

}  // namespace footplate
