#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "protocol/result.h"
#include "protocol/settings.h"
#include "runtime/data/corpus_identity.h"
#include "runtime/data/sampler.h"
#include "runtime/device/compute_device.h"
#include "runtime/device/mixed_precision.h"
#include "runtime/models/parameter.h"

namespace footplate {

/// What is trained: model, data and loss together. Training thread. Everything is a function of the
/// settings and of which samples are asked for, never of the rank or of what was asked before.
class Task {
 public:
  virtual ~Task() = default;

  /// In one order on all ranks; the same initial values on all ranks.
  virtual const std::vector<Parameter>& parameters() const = 0;

  /// Data of `samples`, numbered from the start of the run; not empty.
  virtual at::Tensor load(Slice samples) = 0;

  /// Data of the held-out samples with these numbers, each in [0, held_out_samples()); not empty.
  virtual at::Tensor load_held_out(std::span<const std::int64_t> samples) = 0;
  virtual std::int64_t held_out_samples() const = 0;

  /// What it reads its samples from, which is to be the same on all ranks; a moment's work.
  virtual CorpusIdentity corpus() const { return {}; }

  /// Where its parameters are.
  virtual const ComputeDevice& device() const { return host_device(); }

  /// What attention runs on in that precision ("flash"); empty: there is none.
  virtual std::string attention(Precision /*precision*/) const { return ""; }

  /// What load() or load_held_out() gave, through the model: the sum over its tokens, one float;
  /// differentiable where gradients are on.
  virtual at::Tensor loss(const at::Tensor& batch) = 0;
  /// Whether backward computes the model's parts once more, instead of keeping what forward has computed:
  /// less memory, more time, the same to the last bit.
  virtual void recompute(bool /*on*/) {}
  /// False: there is nothing to keep.
  virtual bool can_recompute() const { return false; }
  /// How many tokens that batch has: what gradients and losses are divided by, once reduced.
  virtual std::int64_t tokens(const at::Tensor& batch) const = 0;
  /// Floating-point operations that a token's forward and backward pass need by the model's formula; 0: not
  /// known.
  virtual double flops_per_token() const { return 0; }
  /// Whether loss() enqueues the same work for all batches of one shape, and reads nothing back
  /// (StepRecorder).
  virtual bool can_be_recorded() const { return false; }

  /// Samples that make one pass over the training data, for train/epoch.
  virtual double samples_per_epoch() const = 0;
};

/// The task that run.task names, on a device that outlives it. Errors (usage): missing corpus, settings that
/// don't fit it.
Result<std::unique_ptr<Task>> make_task(const Settings& settings, int world_size,
                                        const ComputeDevice& device);

}  // namespace footplate
