#include "runtime/train/evaluation.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/zeros.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <vector>

#include "runtime/comm/agree.h"
#include "runtime/comm/batch_all_reduce.h"

namespace footplate {
namespace {

/// With smaller batches after each; what fails then has other reasons than their size.
constexpr int kMostRetries = 3;

/// Of the held-out set; counts are exact as doubles.
struct Sums {
  double loss = 0;
  double tokens = 0;
  double samples = 0;
  double samples_wanted = 0;  ///< of the ranks that failed, too
};

/// How many ranks say so.
struct Verdict {
  double failed_ranks = 0;
  double abandoning_ranks = 0;
};

/// What a rank adds to an evaluation: all of it takes one reduction.
struct Part {
  explicit Part(const HostedTask& task) : metrics(static_cast<std::size_t>(task.sums().metrics())) {}

  Sums sums;
  Verdict verdict;
  std::vector<double> metrics;  ///< sums, in the order of the declaration

  Result<void> reduce(Communicator& communicator) {
    const Buffer buffers[] = {{&sums, sizeof sums / sizeof(double), DataType::float64},
                              {&verdict, sizeof verdict / sizeof(double), DataType::float64},
                              {metrics.data(), static_cast<std::int64_t>(metrics.size()), DataType::float64}};
    return batch_all_reduce(communicator, {std::begin(buffers), std::end(buffers)}, ReduceOp::sum,
                            "eval sums")
        ->wait();
  }
};

/// One attempt, the same on all ranks.
struct Try {
  int number = 0;
  std::int64_t batch_size = 1;

  Try next() const { return {number + 1, std::max<std::int64_t>(1, batch_size / 2)}; }
};

/// This rank's part of the chosen samples: the same in every try.
std::vector<std::int64_t> samples_of(const HostedTask& task, const Communicator& communicator,
                                     const EvalPlan& plan) {
  const std::int64_t all = task.held_out_samples();
  const std::int64_t chosen = plan.batches == 0 ? all : std::min(all, plan.batches * plan.batch_size);
  Slice slice{0, chosen};
  if (plan.mode == EvalMode::all)
    slice = slice_of(chosen, communicator.rank(), communicator.world_size());
  else if (communicator.rank() != 0)
    slice = {0, 0};
  std::vector<std::int64_t> samples;
  for (std::int64_t i = slice.first; i < slice.last; ++i)
    samples.push_back(i * (all / chosen) + i * (all % chosen) / chosen);  // i * all / chosen may overflow
  return samples;
}

/// `row`: the loss and the metrics' sums, on the device, which needn't be waited for after each batch.
void add_batch(HostedTask& task, Precision precision, std::span<const std::int64_t> samples,
               const at::Tensor& row, Sums& sums) {
  const MixedPrecision mixed(precision, task.device().where());
  const v1::Batch batch = task.load_held_out(samples);
  RowOfSums metrics(task.sums(), row.narrow(0, 1, row.size(0) - 1), /*statistics=*/false);
  row.narrow(0, 0, 1).add_(task.evaluate(batch, metrics).reshape({1}));
  sums.tokens += batch.weight;
  sums.samples += static_cast<double>(samples.size());
}

void add_all(HostedTask& task, const Communicator& communicator, const EvalPlan& plan, const Try& now,
             const std::function<bool()>& abandon, Part& part) {
  Sums& sums = part.sums;
  const at::NoGradGuard no_grad;
  const auto samples = samples_of(task, communicator, plan);
  const std::span<const std::int64_t> rest(samples);
  const auto batch_size = static_cast<std::size_t>(now.batch_size);
  sums.samples_wanted = static_cast<double>(rest.size());
  const at::Tensor row =
      at::zeros({1 + task.sums().metrics()}, at::TensorOptions(at::kDouble).device(task.device().where()));
  for (std::size_t first = 0; first < rest.size(); first += batch_size) {
    if (abandon()) {
      part.verdict.abandoning_ranks = 1;
      return;
    }
    add_batch(task, plan.precision, rest.subspan(first, std::min(batch_size, rest.size() - first)), row,
              sums);
  }
  const at::Tensor on_host = row.cpu();
  const auto* found = on_host.const_data_ptr<double>();
  sums.loss = found[0];
  part.metrics.assign(found + 1, found + on_host.numel());
}

/// This rank's sums; where it fails, none, and why.
std::string try_once(HostedTask& task, const Communicator& communicator, const EvalPlan& plan, const Try& now,
                     const std::function<bool()>& abandon, Part& part) {
  part = Part(task);
  try {
    add_all(task, communicator, plan, now, abandon, part);
    return "";
  } catch (const std::exception& error) {
    const double wanted = part.sums.samples_wanted;
    part = Part(task);
    part.sums.samples_wanted = wanted;
    part.verdict.failed_ranks = 1;
    const std::string reason = task.device().explain(error);
    return reason.empty() ? "unknown error" : reason;
  }
}

/// What all ranks' sums come to, in batches of `batch_size` whatever the ranks cut their parts into. `result`
/// has its retries and their reason.
Result<EvalResult> conclude(const HostedTask& task, const Part& part, std::int64_t batch_size,
                            EvalResult result) {
  const Sums& sums = part.sums;
  if (part.verdict.failed_ranks > 0 && sums.samples == 0)
    return fail(ErrorKind::failed, fmt::format("evaluation failed {} times, with ever smaller batches: {}",
                                               result.retries + 1, result.reason));
  result.loss = sums.loss / sums.tokens;
  if (!std::isfinite(result.loss))
    return fail(ErrorKind::failed, fmt::format("evaluation failed: its loss isn't finite ({})", result.loss));
  result.metrics = task.metrics_of(part.metrics, sums.tokens);
  result.tokens = static_cast<std::int64_t>(sums.tokens);
  const auto samples = static_cast<std::int64_t>(sums.samples);
  const auto wanted = static_cast<std::int64_t>(sums.samples_wanted);
  result.batches_wanted = (wanted + batch_size - 1) / batch_size;
  result.batches = samples == wanted ? result.batches_wanted : samples / batch_size;
  return result;
}

/// Nothing is reduced; what this rank has found by itself is said for what it is.
tl::unexpected<Error> skipped(const Error& error, const Sums& local, int rank) {
  std::string text = "evaluation skipped: " + error.message;
  if (local.tokens > 0 && local.samples == local.samples_wanted)
    text += fmt::format(". Local loss of rank {}: {:.4f}", rank, local.loss / local.tokens);
  return fail(error.kind, text);
}

/// From this rank's part to that of all ranks. Errors: one didn't come (timed_out), one gives up (refused).
Result<void> meet_and_reduce(Communicator& communicator, const std::function<Result<void>()>& meet,
                             Part& part) {
  if (meet)
    if (const auto met = meet(); !met) return skipped(met.error(), part.sums, communicator.rank());
  if (auto done = part.reduce(communicator); !done) return done;
  if (part.verdict.abandoning_ranks > 0)
    return fail(ErrorKind::refused, "evaluation given up: it was cancelled, or the run ends");
  return {};
}

}  // namespace

Result<EvalResult> evaluate(HostedTask& task, Communicator& communicator, const EvalPlan& plan,
                            const EvalPorts& ports) {
  const auto start = std::chrono::steady_clock::now();
  EvalResult result;
  Part part(task);
  for (Try now{0, plan.batch_size};; now = now.next()) {
    const std::string reason = try_once(task, communicator, plan, now, ports.abandon, part);
    if (const auto met = meet_and_reduce(communicator, ports.meet, part); !met)
      return tl::unexpected(met.error());
    result.retries = now.number;
    if (part.verdict.failed_ranks == 0) break;
    auto reasons = gather_reasons(communicator, reason);
    if (!reasons) return tl::unexpected(reasons.error());
    result.reason = *std::move(reasons);
    if (now.number == kMostRetries) break;
  }
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  result.seconds = seconds.count();
  return conclude(task, part, plan.batch_size, std::move(result));
}

EvalShare EvalShare::failed(std::string reason) {
  EvalShare share;
  share.failed_ranks = 1;
  share.reason = std::move(reason);
  return share;
}

EvalShare evaluate_share(HostedTask& task, const Communicator& communicator, const EvalPlan& plan,
                         const std::function<bool()>& abandon) {
  const auto start = std::chrono::steady_clock::now();
  EvalShare share;
  Part part(task);
  for (Try now{0, plan.batch_size};; now = now.next()) {
    const std::string reason = try_once(task, communicator, plan, now, abandon, part);
    if (!reason.empty()) share.reason = reason;
    share.retries = now.number;
    if (part.verdict.failed_ranks == 0 || now.number == kMostRetries) break;
  }
  share.loss = part.sums.loss;
  share.tokens = part.sums.tokens;
  share.samples = part.sums.samples;
  share.samples_wanted = part.sums.samples_wanted;
  share.failed_ranks = part.verdict.failed_ranks;
  share.abandoning_ranks = part.verdict.abandoning_ranks;
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  share.seconds = seconds.count();
  share.metrics = part.metrics;
  return share;
}

Result<EvalResult> gather_shares(Communicator& communicator, const HostedTask& task, const EvalPlan& plan,
                                 const EvalShare& share, const std::function<Result<void>()>& meet) {
  Part part(task);
  part.sums = {share.loss, share.tokens, share.samples, share.samples_wanted};
  part.verdict = {share.failed_ranks, share.abandoning_ranks};
  if (!share.metrics.empty()) part.metrics = share.metrics;
  if (const auto met = meet_and_reduce(communicator, meet, part); !met) return tl::unexpected(met.error());
  std::array<double, 2> most{share.retries, share.seconds};
  const Buffer buffer{most.data(), most.size(), DataType::float64};
  if (const auto done = communicator.all_reduce(buffer, ReduceOp::max, "eval times")->wait(); !done)
    return tl::unexpected(done.error());
  EvalResult result;
  result.retries = static_cast<int>(most[0]);
  result.seconds = most[1];
  if (result.retries > 0 || part.verdict.failed_ranks > 0) {
    auto reasons = gather_reasons(communicator, share.reason);
    if (!reasons) return tl::unexpected(reasons.error());
    result.reason = *std::move(reasons);
  }
  return conclude(task, part, plan.batch_size, std::move(result));
}

}  // namespace footplate
