#include "runtime/models/linear_cross_entropy.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/_log_softmax.h>
#include <ATen/ops/addmm.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/exp.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/zeros.h>
#include <c10/core/DispatchKeySet.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>
#include <limits>

#include "runtime/device/mixed_precision.h"

namespace footplate {
namespace {

/// Rows of logits begin at a multiple of this: cuBLAS's fast kernels want 16 bytes, its widest tiles more.
constexpr std::int64_t kAlignment = 64;

/// What the pieces add up to.
struct PieceSums {
  at::Tensor loss, hits;
  at::Tensor of_x, of_weight;  ///< gradients; undefined where none were asked for
};

/// Works through the rows piece by piece. Without autocast: each product here has its types already.
class CrossEntropyPieces {
 public:
  CrossEntropyPieces(const at::Tensor& x, const at::Tensor& weight, std::int64_t most_logits)
      : type_(type_of(x)),
        guard_(c10::autocast_dispatch_keyset),
        vocabulary_(weight.size(0)),
        padded_((vocabulary_ + kAlignment - 1) / kAlignment * kAlignment),
        rows_(std::clamp<std::int64_t>(most_logits / padded_, 1, std::max<std::int64_t>(x.size(0), 1))),
        x_(x.detach().to(type_)),
        weight_(at::zeros({padded_, weight.size(1)}, x_.options())) {
    weight_.narrow(0, 0, vocabulary_).copy_(weight.detach());
    logits_ = at::empty({rows_, padded_}, x_.options());
  }

  PieceSums sum(const at::Tensor& targets, bool count_hits, bool gradients) {
    const auto floats = x_.options().dtype(sum_type());
    PieceSums sums{.loss = at::zeros({}, floats), .hits = {}, .of_x = {}, .of_weight = {}};
    if (count_hits) sums.hits = at::zeros({}, targets.options());
    if (gradients) {
      sums.of_x = at::empty(x_.sizes(), x_.options());
      sums.of_weight = at::zeros(weight_.sizes(), floats);
    }
    for (std::int64_t first = 0; first < x_.size(0); first += rows_)
      add(first, std::min(rows_, x_.size(0) - first), targets, sums);
    if (gradients) sums.of_weight = sums.of_weight.narrow(0, 0, vocabulary_);
    return sums;
  }

 private:
  static at::ScalarType type_of(const at::Tensor& x) {
    return MixedPrecision::now(x.device()) == Precision::bf16 ? at::kBFloat16 : x.scalar_type();
  }
  /// Double where x is: a check of gradients needs it.
  at::ScalarType sum_type() const { return type_ == at::kBFloat16 ? at::kFloat : type_; }

  void add(std::int64_t first, std::int64_t rows, const at::Tensor& targets, PieceSums& sums) {
    const at::Tensor x = x_.narrow(0, first, rows), target = targets.narrow(0, first, rows).unsqueeze(1);
    at::Tensor logits = logits_.narrow(0, 0, rows);
    at::mm_out(logits, x, weight_.t());
    if (padded_ > vocabulary_)
      logits.narrow(1, vocabulary_, padded_ - vocabulary_).fill_(-std::numeric_limits<double>::infinity());
    const at::Tensor logs = at::_log_softmax(logits.to(sum_type()), 1, /*half_to_float=*/false);
    sums.loss.sub_(logs.gather(1, target).sum());
    if (sums.hits.defined()) sums.hits.add_(logs.argmax(1, /*keepdim=*/true).eq(target).sum());
    if (!sums.of_x.defined()) return;
    // The softmax, less 1 at the target: there in full precision, as it may be close to 1.
    const at::Tensor at_target = logs.gather(1, target).expm1();
    const at::Tensor& of_logits = at::exp_out(logits, logs).scatter_(1, target, at_target.to(type_));
    at::Tensor of_x = sums.of_x.narrow(0, first, rows);
    at::mm_out(of_x, of_logits, weight_);
    add_product(sums.of_weight, of_logits.t(), x);
  }

  /// The product of two matrices, added to `sum` in its own type.
  static void add_product(at::Tensor& sum, const at::Tensor& a, const at::Tensor& b) {
    if (a.scalar_type() == sum.scalar_type())
      sum.addmm_(a, b);
    else if (a.is_cuda())
      at::addmm_out(sum, sum, a, b, sum.scalar_type());
    else
      sum.add_(at::mm(a, b));
  }

  const at::ScalarType type_;  ///< of products; what autocast wants is to be seen only outside of the guard
  const c10::impl::ExcludeDispatchKeyGuard guard_;
  const std::int64_t vocabulary_, padded_, rows_;
  const at::Tensor x_;
  at::Tensor weight_, logits_;
};

struct LinearCrossEntropy : torch::autograd::Function<LinearCrossEntropy> {
  static at::Tensor forward(torch::autograd::AutogradContext* context, const at::Tensor& x,
                            const at::Tensor& weight, const at::Tensor& targets, std::int64_t most_logits) {
    const PieceSums sums =
        CrossEntropyPieces(x, weight, most_logits).sum(targets, /*count_hits=*/false, /*gradients=*/true);
    context->save_for_backward({sums.of_x.to(x.scalar_type()), sums.of_weight.to(weight.scalar_type())});
    return sums.loss;
  }

  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 const torch::autograd::variable_list& gradients) {
    const auto saved = context->get_saved_variables();
    return {saved[0] * gradients[0], saved[1] * gradients[0], {}, {}};
  }
};

}  // namespace

at::Tensor linear_cross_entropy(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& targets,
                                std::int64_t most_logits) {
  if (at::GradMode::is_enabled() && (x.requires_grad() || weight.requires_grad()))
    return LinearCrossEntropy::apply(x, weight, targets, most_logits);
  return CrossEntropyPieces(x, weight, most_logits)
      .sum(targets, /*count_hits=*/false, /*gradients=*/false)
      .loss;
}

LossAndHits linear_loss_and_hits(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& targets,
                                 std::int64_t most_logits) {
  const PieceSums sums =
      CrossEntropyPieces(x, weight, most_logits).sum(targets, /*count_hits=*/true, /*gradients=*/false);
  return {sums.loss, sums.hits};
}

}  // namespace footplate
