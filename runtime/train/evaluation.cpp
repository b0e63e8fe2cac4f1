#include "runtime/train/evaluation.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/_local_scalar_dense.h>

#include <algorithm>
#include <chrono>
#include <stdexcept>
#include <vector>

#include "runtime/control/fault.h"
#include "runtime/train/agree.h"

namespace footplate {
namespace {

/// Reduced as one tensor; counts are exact as doubles.
struct Sums {
  double loss = 0;
  double tokens = 0;
  double batches = 0;
  double failed_ranks = 0;
  double abandoning_ranks = 0;
};

/// This rank's part of the chosen samples.
std::vector<std::int64_t> samples_of(const Task& task, const Communicator& communicator,
                                     const EvalPlan& plan) {
  const std::int64_t all = task.held_out_samples();
  const std::int64_t chosen = plan.batches == 0 ? all : std::min(all, plan.batches * plan.batch_size);
  Slice slice{0, chosen};
  if (plan.mode == EvalMode::all)
    slice = slice_of(chosen, communicator.rank(), communicator.world_size());
  else if (communicator.rank() != 0)
    slice = {0, 0};
  std::vector<std::int64_t> samples;
  for (std::int64_t i = slice.first; i < slice.last; ++i) samples.push_back(i * all / chosen);
  return samples;
}

void add_batch(Task& task, std::span<const std::int64_t> samples, Sums& sums) {
  const Loss loss = task.loss(task.load_held_out(samples));
  sums.loss += loss.sum.item<double>();
  sums.tokens += static_cast<double>(loss.tokens);
  sums.batches += 1;
}

void add_all(Task& task, const Communicator& communicator, const EvalPlan& plan,
             const std::function<bool()>& abandon, Sums& sums) {
  const at::NoGradGuard no_grad;
  const auto samples = samples_of(task, communicator, plan);
  const std::span<const std::int64_t> rest(samples);
  const auto batch_size = static_cast<std::size_t>(plan.batch_size);
  for (std::size_t first = 0; first < rest.size(); first += batch_size) {
    if (abandon()) {
      sums.abandoning_ranks = 1;
      return;
    }
    add_batch(task, rest.subspan(first, std::min(batch_size, rest.size() - first)), sums);
  }
  if (fault("eval_throw", communicator.rank())) throw std::runtime_error("injected by FOOTPLATE_FAULT");
}

}  // namespace

Result<EvalResult> evaluate(Task& task, Communicator& communicator, const EvalPlan& plan,
                            const std::function<bool()>& abandon) {
  const auto start = std::chrono::steady_clock::now();
  Sums sums;
  std::string reason;
  try {
    add_all(task, communicator, plan, abandon, sums);
  } catch (const std::exception& error) {
    sums.failed_ranks = 1;
    reason = error.what();
  }
  const Buffer buffer{&sums, sizeof(Sums) / sizeof(double), DataType::float64};
  if (const auto done = communicator.all_reduce(buffer, ReduceOp::sum, "eval sums")->wait(); !done)
    return tl::unexpected(done.error());
  if (sums.failed_ranks > 0) {
    const auto reasons = gather_reasons(communicator, reason);
    return fail(ErrorKind::failed, "evaluation failed: " + (reasons ? *reasons : reasons.error().message));
  }
  if (sums.abandoning_ranks > 0)
    return fail(ErrorKind::refused, "evaluation given up: it was cancelled, or the run ends");
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  return EvalResult{sums.loss / sums.tokens, static_cast<std::int64_t>(sums.tokens),
                    static_cast<std::int64_t>(sums.batches), seconds.count()};
}

}  // namespace footplate
