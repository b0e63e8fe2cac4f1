#include "runtime/models/rvq_quantiser.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/addmm.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <c10/core/DispatchKeySet.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

#include <cmath>

namespace footplate {
namespace {

/// Deviation of first codes. They are small, so that the first codebook's take in what there is.
constexpr double kFirstCodes = 0.1;
/// Halves of a code part by this much of what a code of its codebook usually measures.
constexpr double kApart = 0.1;
/// Against division by zero, of counts: far below one choice.
constexpr double kTiny = 1e-10;
/// Laplace's smoothing of running counts, so that the mean of a code which is hardly chosen isn't all noise.
constexpr double kSmoothing = 1e-5;

/// Autocast of the caller doesn't reach what happens while it lives.
using WithoutAutocast = c10::impl::ExcludeDispatchKeyGuard;

at::Tensor drawn(const QuantiserShape& shape, double deviation, at::Generator& generator, at::Device where) {
  return at::empty({shape.codebooks, shape.codes, shape.width}, at::kFloat)
      .normal_(0.0, deviation, generator)
      .to(where);
}

/// `indexes` [codebooks, n] as those of the rows of [codebooks, codes, width].
at::Tensor of_rows(const at::Tensor& indexes, std::int64_t width) {
  return indexes.unsqueeze(2).expand({-1, -1, width});
}

void keep_or_take(const at::Tensor& kept, const at::Tensor& taken, const at::Tensor& skip) {
  kept.copy_(at::where(skip.gt(0), kept, taken));
}

}  // namespace

RvqQuantiser::RvqQuantiser(const QuantiserShape& shape, std::uint64_t seed, at::Device where)
    : shape_(shape) {
  at::Generator generator = at::make_generator<at::CPUGeneratorImpl>(seed);
  codes_ = drawn(shape, kFirstCodes, generator, where);
  apart_ = drawn(shape, 1.0, generator, where);
  counts_ = at::zeros({shape.codebooks, shape.codes}, codes_.options());
  chosen_ = at::zeros_like(counts_);
  sums_ = at::zeros_like(codes_);
}

std::vector<v1::State> RvqQuantiser::state() const {
  constexpr auto kUpdate = v1::State::WrittenBy::update;
  return {{"codes", codes_, kUpdate},
          {"counts", counts_, kUpdate},
          {"sums", sums_, kUpdate},
          {"chosen", chosen_, kUpdate}};
}

/// The nearest code's index: |c|² - 2 v·c orders codes as the distance does.
at::Tensor RvqQuantiser::nearest(const at::Tensor& vectors, std::int64_t codebook) const {
  const at::Tensor codes = codes_.select(0, codebook);
  return at::addmm(codes.square().sum(1), vectors, codes.t(), /*beta=*/1, /*alpha=*/-2).argmin(1);
}

RvqQuantiser::Quantised RvqQuantiser::quantise(const at::Tensor& vectors) const {
  const WithoutAutocast guard(c10::autocast_dispatch_keyset);
  at::Tensor left = vectors.to(at::kFloat);
  const at::Tensor whole = left;
  at::Tensor commitment = at::zeros({}, left.options());
  std::vector<at::Tensor> indexes;
  for (std::int64_t codebook = 0; codebook < shape_.codebooks; ++codebook) {
    indexes.push_back(nearest(left.detach(), codebook));
    left = left - codes_.select(0, codebook).index_select(0, indexes.back());
    commitment = commitment + left.square().sum();
  }
  // What the codes add up to is `whole - left`; the gradient is that of `whole`.
  return {.values = whole - left.detach(),
          .commitment = commitment / static_cast<double>(shape_.width * shape_.codebooks),
          .indexes = at::stack(indexes, 1)};
}

at::Tensor RvqQuantiser::values_of(const at::Tensor& indexes) const {
  at::Tensor sum = at::zeros({indexes.size(0), shape_.width}, codes_.options());
  for (std::int64_t codebook = 0; codebook < shape_.codebooks; ++codebook)
    sum = sum + codes_.select(0, codebook).index_select(0, indexes.select(1, codebook));
  return sum;
}

RvqQuantiser::Use RvqQuantiser::use_of(const at::Tensor& vectors, const at::Tensor& indexes) const {
  const WithoutAutocast guard(c10::autocast_dispatch_keyset);
  const at::NoGradGuard no_grad;
  at::Tensor left = vectors.to(at::kFloat);
  const at::Tensor numbers = at::arange(shape_.codes, indexes.options());
  std::vector<at::Tensor> counts, sums;
  for (std::int64_t codebook = 0; codebook < shape_.codebooks; ++codebook) {
    const at::Tensor index = indexes.select(1, codebook);
    // As a product of matrices the sums are added up in one order on every device.
    const at::Tensor chosen = index.unsqueeze(0).eq(numbers.unsqueeze(1)).to(at::kFloat);
    counts.push_back(chosen.sum(1));
    sums.push_back(chosen.matmul(left));
    left = left - codes_.select(0, codebook).index_select(0, index);
  }
  return {.counts = at::stack(counts), .sums = at::stack(sums)};
}

void RvqQuantiser::update(const Use& use, const at::Tensor& skip, const CodebookPace& pace) {
  const at::NoGradGuard no_grad;
  const double rest = 1 - pace.decay;
  const Running after = split(
      {.counts = counts_ * pace.decay + use.counts * rest, .sums = sums_ * pace.decay + use.sums * rest},
      pace.dead_below);
  const at::Tensor total = after.counts.sum(1, /*keepdim=*/true);
  const at::Tensor smooth =
      (after.counts + kSmoothing) / (total + kSmoothing * static_cast<double>(shape_.codes)) * total;
  const at::Tensor means = after.sums / smooth.clamp_min(kTiny).unsqueeze(2);
  // One that was never chosen has no mean yet.
  keep_or_take(codes_, at::where(after.counts.gt(0).unsqueeze(2), means, codes_), skip);
  keep_or_take(counts_, after.counts, skip);
  keep_or_take(sums_, after.sums, skip);
  keep_or_take(chosen_, chosen_ * pace.decay + use.counts * rest, skip);
}

/// The code that is chosen least, if it is dead, and the one that is chosen most become two halves of that
/// one; likewise the second least and second most, and so on through half of the codes.
RvqQuantiser::Running RvqQuantiser::split(const Running& running, double dead_below) const {
  const std::int64_t pairs = shape_.codes / 2;
  const at::Tensor order = running.counts.argsort(/*stable=*/true, /*dim=*/1, /*descending=*/false);
  const at::Tensor least = order.narrow(1, 0, pairs), most = order.flip({1}).narrow(1, 0, pairs);
  const at::Tensor of_least = running.counts.gather(1, least), of_most = running.counts.gather(1, most);
  const at::Tensor limit = running.counts.mean(1, /*keepdim=*/true) * dead_below;
  // Halves that would be dead themselves help nobody.
  const at::Tensor splits = of_least.lt(limit).logical_and(of_most.gt(2 * limit));
  const at::Tensor half = of_most / 2;

  const at::Tensor least_rows = of_rows(least, shape_.width), most_rows = of_rows(most, shape_.width);
  const at::Tensor sums_of_most = running.sums.gather(1, most_rows);
  const at::Tensor means = running.sums / running.counts.clamp_min(kTiny).unsqueeze(2);
  const at::Tensor size = (means.square().mean(2) * running.counts).sum(1, /*keepdim=*/true) /
                          running.counts.sum(1, /*keepdim=*/true).clamp_min(kTiny);
  const at::Tensor apart = apart_.gather(1, least_rows) * (kApart * size.sqrt() * half).unsqueeze(2);
  const at::Tensor rows_split = splits.unsqueeze(2);
  return {.counts = running.counts.scatter(1, least, at::where(splits, half, of_least))
                        .scatter(1, most, at::where(splits, half, of_most)),
          .sums = running.sums
                      .scatter(
                          1, least_rows,
                          at::where(rows_split, sums_of_most / 2 + apart, running.sums.gather(1, least_rows)))
                      .scatter(1, most_rows, at::where(rows_split, sums_of_most / 2 - apart, sums_of_most))};
}

at::Tensor RvqQuantiser::share_in_use(double decay) const {
  // What one choice is worth after as many steps as running counts look back.
  const double one_choice = decay < 1 ? (1 - decay) * std::pow(decay, 1 / (1 - decay)) : 0;
  return chosen_.gt(one_choice).to(at::kFloat).mean();
}

at::Tensor RvqQuantiser::perplexity() const {
  const at::Tensor shares = counts_ / counts_.sum(1, /*keepdim=*/true).clamp_min(kTiny);
  return (shares * shares.clamp_min(kTiny).log()).sum(1).neg().exp().mean();
}

}  // namespace footplate
