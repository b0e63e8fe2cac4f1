#include "runtime/train/evaluation.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/zeros.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include "runtime/comm/agree.h"
#include "runtime/comm/batch_all_reduce.h"

namespace footplate {
namespace {

/// Where memory is short, with smaller batches after each; what fails then has other reasons than their size.
constexpr int kMostRetries = 3;
/// Of what fails otherwise: something that passes may be why, or memory that a library doesn't tell of.
constexpr int kOtherRetries = 1;

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
  double out_of_memory_ranks = 0;  ///< of those that failed

  /// Whether that was the last try, the `number`-th after the first one.
  bool ends(int number) const {
    return failed_ranks == 0 || number >= (out_of_memory_ranks > 0 ? kMostRetries : kOtherRetries);
  }
};

/// What a rank adds to an evaluation: all of it takes one reduction.
struct Part {
  explicit Part(const HostedTask& task)
      : measured(static_cast<std::size_t>(task.held_out_sums().measured())) {}

  Sums sums;
  Verdict verdict;
  std::vector<double> measured;  ///< as of SumsLayout

  Result<void> reduce(Communicator& communicator) {
    const Buffer buffers[] = {
        {&sums, sizeof sums / sizeof(double), DataType::float64},
        {&verdict, sizeof verdict / sizeof(double), DataType::float64},
        {measured.data(), static_cast<std::int64_t>(measured.size()), DataType::float64}};
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

/// Held-out samples of one data set.
struct HeldOut {
  int set = 0;
  std::vector<std::int64_t> samples;
};

/// How many of each set are evaluated: of several sets about as many of each, so that a small one has a say.
std::vector<std::int64_t> chosen_of(const HostedTask& task, const EvalPlan& plan) {
  const auto sizes = task.held_out();
  const std::int64_t all = task.held_out_samples();
  if (plan.batches == 0 || plan.batches >= (all + plan.batch_size - 1) / plan.batch_size) return sizes;
  return spread_evenly(std::min(all, plan.batches * plan.batch_size), sizes);
}

/// Of `total` samples over all ranks.
Slice slice_of_rank(std::int64_t total, const Communicator& communicator, EvalMode mode) {
  if (mode == EvalMode::all) return slice_of(total, communicator.rank(), communicator.world_size());
  return communicator.rank() == 0 ? Slice{0, total} : Slice{0, 0};
}

/// This rank's part of the chosen samples, evenly spread over each set: the same in every try.
std::vector<HeldOut> samples_of(const HostedTask& task, const Communicator& communicator,
                                const EvalPlan& plan) {
  const auto chosen = chosen_of(task, plan);
  const auto sizes = task.held_out();
  const std::int64_t total = std::accumulate(chosen.begin(), chosen.end(), std::int64_t{0});
  const Slice slice = slice_of_rank(total, communicator, plan.mode);
  std::vector<HeldOut> parts;
  std::int64_t begin = 0;
  for (std::size_t set = 0; set < chosen.size(); begin += chosen[set++]) {
    HeldOut part{static_cast<int>(set), {}};
    const std::int64_t all = sizes[set];
    const std::int64_t last = std::min(slice.last - begin, chosen[set]);
    for (std::int64_t i = std::max<std::int64_t>(0, slice.first - begin); i < last;
         ++i)  // i * all may overflow
      part.samples.push_back(i * (all / chosen[set]) + i * (all % chosen[set]) / chosen[set]);
    if (!part.samples.empty()) parts.push_back(std::move(part));
  }
  return parts;
}

double count_of(const std::vector<HeldOut>& sets) {
  double samples = 0;
  for (const HeldOut& set : sets) samples += static_cast<double>(set.samples.size());
  return samples;
}

/// `row`: the loss and what is measured, on the device, which needn't be waited for after each batch.
void add_batch(HostedTask& task, Precision precision, int set, std::span<const std::int64_t> samples,
               const at::Tensor& row, Sums& sums) {
  const MixedPrecision mixed(precision, task.device().where());
  const v1::Batch batch = task.load_held_out(set, samples);
  RowOfSums measured(task.held_out_sums(), row.narrow(0, 1, row.size(0) - 1), /*statistics=*/false);
  measured.begin(batch);
  const at::Tensor loss = task.evaluate(batch, measured).reshape({1});
  row.narrow(0, 0, 1).add_(loss);
  measured.add_loss(loss);
  sums.tokens += batch.weight;
  sums.samples += static_cast<double>(samples.size());
}

/// False: it was given up.
bool add_set(HostedTask& task, const HeldOut& part, Precision precision, std::int64_t batch_size,
             const at::Tensor& row, const std::function<bool()>& abandon, Sums& sums) {
  const std::span<const std::int64_t> rest(part.samples);
  const auto most = static_cast<std::size_t>(batch_size);
  for (std::size_t first = 0; first < rest.size(); first += most) {
    if (abandon()) return false;
    add_batch(task, precision, part.set, rest.subspan(first, std::min(most, rest.size() - first)), row, sums);
  }
  return true;
}

void add_all(HostedTask& task, const Communicator& communicator, const EvalPlan& plan, const Try& now,
             const std::function<bool()>& abandon, Part& part) {
  Sums& sums = part.sums;
  const at::NoGradGuard no_grad;
  const auto sets = samples_of(task, communicator, plan);
  sums.samples_wanted = count_of(sets);
  const at::Tensor row = at::zeros({1 + task.held_out_sums().measured()},
                                   at::TensorOptions(at::kDouble).device(task.device().where()));
  for (const HeldOut& set : sets)
    if (!add_set(task, set, plan.precision, now.batch_size, row, abandon, sums)) {
      part.verdict.abandoning_ranks = 1;
      return;
    }
  const at::Tensor on_host = row.cpu();
  const auto* found = on_host.const_data_ptr<double>();
  sums.loss = found[0];
  part.measured.assign(found + 1, found + on_host.numel());
}

/// This rank's sums; where it fails, none, and why.
std::string try_once(HostedTask& task, const Communicator& communicator, const EvalPlan& plan, const Try& now,
                     const std::function<bool()>& abandon, Part& part) {
  part = Part(task);
  std::string reason;
  bool lacks_memory = false;
  try {
    add_all(task, communicator, plan, now, abandon, part);
    return "";
  } catch (const std::exception& error) {
    if (task.device().failure()) throw;  // another try finds it so
    lacks_memory = is_out_of_memory(error);
    reason = task.device().explain(error);
  } catch (...) {
    reason = kThrewNoException;
  }
  const double wanted = part.sums.samples_wanted;
  part = Part(task);
  part.sums.samples_wanted = wanted;
  part.verdict.failed_ranks = 1;
  part.verdict.out_of_memory_ranks = lacks_memory ? 1 : 0;
  return reason.empty() ? "unknown error" : reason;
}

/// What all ranks' sums come to, in batches of `batch_size` whatever the ranks cut their parts into. `result`
/// has its retries and their reason.
Result<EvalResult> conclude(const HostedTask& task, const Part& part, std::int64_t batch_size,
                            EvalResult result) {
  const Sums& sums = part.sums;
  if (part.verdict.failed_ranks > 0 && sums.samples == 0)
    return fail(
        ErrorKind::failed,
        fmt::format("evaluation failed {} times{}: {}", result.retries + 1,
                    result.retries > kOtherRetries ? ", with ever smaller batches" : "", result.reason));
  result.loss = sums.loss / sums.tokens;
  if (!std::isfinite(result.loss))
    return fail(ErrorKind::failed, fmt::format("evaluation failed: its loss isn't finite ({})", result.loss));
  result.metrics = task.held_out_sums().metrics_of(part.measured, sums.tokens);
  result.tokens = static_cast<std::int64_t>(sums.tokens);
  const auto samples = static_cast<std::int64_t>(sums.samples);
  const auto wanted = static_cast<std::int64_t>(sums.samples_wanted);
  result.batches_wanted = (wanted + batch_size - 1) / batch_size;
  result.batches = samples == wanted ? result.batches_wanted : samples / batch_size;
  return result;
}

/// What this rank has found by itself, of all of its part.
std::optional<LocalEvaluation> local_of(const HostedTask& task, const Part& part) {
  const Sums& sums = part.sums;
  if (sums.tokens == 0 || sums.samples < sums.samples_wanted) return std::nullopt;
  return LocalEvaluation{sums.loss / sums.tokens,
                         task.held_out_sums().metrics_of(part.measured, sums.tokens)};
}

/// From this rank's part to that of all ranks. Errors: one didn't come (timed_out), one gives up (refused).
/// Where the ranks can't put their parts together, this one keeps its own.
Result<void> meet_and_reduce(const HostedTask& task, Communicator& communicator, const EvalPorts& ports,
                             Part& part) {
  const auto keep_local = [&](Error error) {
    if (const auto local = local_of(task, part); local && ports.keep_local) ports.keep_local(*local);
    return tl::unexpected(std::move(error));
  };
  if (ports.meet)
    if (const auto met = ports.meet(); !met)
      return keep_local({met.error().kind, "evaluation skipped: " + met.error().message});
  if (const auto done = part.reduce(communicator); !done) return keep_local(done.error());
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
    if (const auto met = meet_and_reduce(task, communicator, ports, part); !met)
      return tl::unexpected(met.error());
    result.retries = now.number;
    if (part.verdict.failed_ranks == 0) break;
    auto reasons = gather_reasons(communicator, reason);
    if (!reasons) return tl::unexpected(reasons.error());
    result.reason = *std::move(reasons);
    if (part.verdict.ends(now.number)) break;
  }
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  result.seconds = seconds.count();
  return conclude(task, part, plan.batch_size, std::move(result));
}

EvalShare EvalShare::failed(const HostedTask& task, const Communicator& communicator, const EvalPlan& plan,
                            std::string reason) {
  EvalShare share;
  share.samples_wanted = count_of(samples_of(task, communicator, plan));
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
    if (part.verdict.ends(now.number)) break;
  }
  share.loss = part.sums.loss;
  share.tokens = part.sums.tokens;
  share.samples = part.sums.samples;
  share.samples_wanted = part.sums.samples_wanted;
  share.failed_ranks = part.verdict.failed_ranks;
  share.abandoning_ranks = part.verdict.abandoning_ranks;
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  share.seconds = seconds.count();
  share.measured = part.measured;
  return share;
}

Result<EvalResult> gather_shares(Communicator& communicator, const HostedTask& task, const EvalPlan& plan,
                                 const EvalShare& share, const EvalPorts& ports) {
  Part part(task);
  part.sums = {share.loss, share.tokens, share.samples, share.samples_wanted};
  part.verdict = {share.failed_ranks, share.abandoning_ranks, 0};
  if (!share.measured.empty()) part.measured = share.measured;
  if (const auto met = meet_and_reduce(task, communicator, ports, part); !met)
    return tl::unexpected(met.error());
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
