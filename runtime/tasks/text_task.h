#pragma once

#include "runtime/data/corpus.h"
#include "runtime/models/gpt.h"
#include "runtime/tasks/task.h"

namespace footplate {

/// A byte-level language model on a text corpus. A sample is model.context bytes and the one after
/// them: in training from a random place, held out from consecutive windows that don't overlap.
class TextTask : public Task {
 public:
  static Result<std::unique_ptr<Task>> make(const Settings& settings, int world_size,
                                            const ComputeDevice& device);

  const std::vector<Parameter>& parameters() const override { return model_.parameters(); }
  at::Tensor load(Slice samples) override;
  at::Tensor load_held_out(std::span<const std::int64_t> samples) override;
  std::int64_t held_out_samples() const override;
  CorpusIdentity corpus() const override { return corpus_.identity(); }
  const ComputeDevice& device() const override { return device_; }
  std::string attention(Precision precision) const override { return model_.attention_kernel(precision); }
  at::Tensor loss(const at::Tensor& batch) override;
  void recompute(bool on) override { model_.recompute(on); }
  bool can_recompute() const override { return true; }
  std::int64_t tokens(const at::Tensor& batch) const override { return batch.size(0) * context_; }
  double flops_per_token() const override { return model_.flops_per_token(); }
  bool can_be_recorded() const override { return true; }
  double samples_per_epoch() const override;

 private:
  TextTask(Corpus corpus, const GptShape& shape, std::uint64_t seed, const ComputeDevice& device);

  const ComputeDevice& device_;
  Corpus corpus_;
  std::int64_t context_;
  std::uint64_t seed_;
  Gpt model_;
};

}  // namespace footplate
