#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runtime/base/fault.h"
#include "runtime/tasks/task.h"

namespace footplate {

/// What FOOTPLATE_FAULT asks of a rank's model and data, around another task: step_throw, step_oom, nan_grad,
/// nan_loss, flip_bit, and of evaluations eval_throw, eval_stall, eval_nan. Where there are gradients it is
/// a step that is computed, where there are none an evaluation.
class FaultyTask final : public Task {
 public:
  /// `step`: completed steps, while a step is computed; outlives it. `rank`: at the start, which the faults
  /// name.
  FaultyTask(std::unique_ptr<Task> inner, const std::int64_t& step, int rank);

  const std::vector<Parameter>& parameters() const override { return inner_->parameters(); }
  at::Tensor load(Slice samples) override;
  at::Tensor load_held_out(std::span<const std::int64_t> samples) override;
  std::int64_t held_out_samples() const override { return inner_->held_out_samples(); }
  CorpusIdentity corpus() const override { return inner_->corpus(); }
  const ComputeDevice& device() const override { return inner_->device(); }
  std::string attention(Precision precision) const override { return inner_->attention(precision); }
  at::Tensor loss(const at::Tensor& batch) override;
  void recompute(bool on) override { inner_->recompute(on); }
  bool can_recompute() const override { return inner_->can_recompute(); }
  std::int64_t tokens(const at::Tensor& batch) const override { return inner_->tokens(batch); }
  double flops_per_token() const override { return inner_->flops_per_token(); }
  bool can_be_recorded() const override { return false; }  ///< a fault isn't the same work every time
  double samples_per_epoch() const override { return inner_->samples_per_epoch(); }

 private:
  void put_nan_among(at::Tensor& gradient) const;
  void flip_bit();
  void fail_step() const;
  void fail_evaluation(std::int64_t batch_size) const;

  const std::unique_ptr<Task> inner_;
  const std::int64_t& step_;
  const std::optional<Fault> throws_, out_of_memory_, nan_gradient_, nan_loss_, flip_bit_;
  const std::optional<Fault> evaluation_throws_, stalls_, evaluation_nan_;
  std::int64_t loaded_ = 0;          ///< samples
  std::int64_t flipped_after_ = -1;  ///< step

  // The evaluation under way.
  std::int64_t first_sample_ = -1;  ///< of its last batch; -1: there was none
  std::int64_t batch_size_ = 0;     ///< of its first one
  std::int64_t try_ = 0;
  bool threw_ = false;
};

}  // namespace footplate
