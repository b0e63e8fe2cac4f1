#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "footplate/task.h"
#include "protocol/mutex.h"
#include "runtime/base/fault.h"

namespace footplate {

/// What FOOTPLATE_FAULT asks of a rank's model and data, around another task: step_throw, step_oom,
/// device_error, nan_grad, nan_loss, flip_bit, and of evaluations eval_throw, eval_stall, eval_nan. Where
/// there are gradients it is a step that is computed, where there are none an evaluation.
class FaultyTask final : public v1::Task {
 public:
  /// `step`: completed steps, while a step is computed; outlives it. `rank`: at the start, which the faults
  /// name.
  FaultyTask(std::unique_ptr<v1::Task> inner, const std::int64_t& step, int rank);

  /// Before anything of a step is done.
  void begin_step();

  std::vector<v1::Parameter> parameters() override { return inner_->parameters(); }
  std::vector<v1::Group> groups() override { return inner_->groups(); }
  std::vector<v1::State> state() override { return inner_->state(); }
  std::vector<v1::Statistic> statistics() override { return inner_->statistics(); }
  std::vector<v1::DataSet> data() override { return inner_->data(); }
  v1::Batch load(const v1::Samples& samples) override;
  std::vector<at::Tensor> by_draw(const v1::Samples& samples) override { return inner_->by_draw(samples); }
  at::Tensor loss(const v1::Batch& batch, v1::Sums& sums) override;
  at::Tensor evaluate(const v1::Batch& batch, v1::Sums& sums) override;
  void training(bool on) override { inner_->training(on); }
  void update(const std::vector<at::Tensor>& statistics, const at::Tensor& skip) override {
    inner_->update(statistics, skip);
  }
  std::string prepare(const v1::Values& after) override { return inner_->prepare(after); }
  void changed(const v1::Values& now, std::int64_t step) override { inner_->changed(now, step); }
  std::string call(const std::string& action, const v1::Arguments& arguments, std::int64_t step) override {
    return inner_->call(action, arguments, step);
  }
  std::optional<double> learning_rate(std::int64_t step) const override {
    return inner_->learning_rate(step);
  }
  void recompute(bool on) override { inner_->recompute(on); }
  bool can_recompute() const override { return inner_->can_recompute(); }
  bool can_be_recorded() const override { return false; }  ///< a fault isn't the same work every time
  double flops_per_weight() const override { return inner_->flops_per_weight(); }
  std::string runs_on(bool bf16) const override { return inner_->runs_on(bf16); }

 private:
  void put_nan_among(at::Tensor& gradient) const;
  void fail_step(const v1::Batch& batch);
  std::int64_t samples_of(const v1::Batch& batch);
  void fail_evaluation(std::int64_t batch_size) const;

  void load_held_out(const v1::Samples& samples);

  const std::unique_ptr<v1::Task> inner_;
  const at::Tensor first_parameter_;
  const std::int64_t& step_;
  const std::optional<Fault> throws_, out_of_memory_, device_error_, nan_gradient_, nan_loss_, flip_bit_;
  const std::optional<Fault> evaluation_throws_, stalls_, evaluation_nan_;
  Mutex mutex_;
  std::map<double, std::int64_t> samples_of_ GUARDED_BY(mutex_);  ///< of training batches, by their weight
  std::int64_t flipped_after_ = -1;                               ///< step

  // The evaluation under way.
  std::int64_t first_sample_ = -1;  ///< of its last batch; -1: there was none
  std::int64_t batch_size_ = 0;     ///< of its first one
  std::int64_t try_ = 0;
  bool threw_ = false;
};

}  // namespace footplate
