#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <optional>
#include <vector>

#include "footplate/task.h"
#include "runtime/device/compute_device.h"
#include "runtime/optim/optimizer_settings.h"
#include "runtime/optim/parameter_group.h"
#include "runtime/state/state_table.h"

namespace footplate {

/// Updates parameters from their gradients. Everything is enqueued on the device, and nothing is read back.
/// Training thread.
class Optimizer {
 public:
  virtual ~Optimizer() = default;

  /// Of the steps to come.
  virtual void set_learning_rate(double rate) = 0;

  /// Enqueues one update with the parameters' grads, each divided by `divisor` on the way; where `skip` is 1
  /// nothing is written. Both are single floats on the device: what comes of a step may be decided there.
  virtual void step(const OptimizerSettings& settings, const at::Tensor& divisor, const at::Tensor& skip) = 0;

  /// Adds what it keeps between steps ("optim/…"); it stays where it is.
  virtual void list_state(StateTable& table) const = 0;

  /// Takes up what somebody else has written into parameters since the last step: it goes on from there.
  virtual void take_parameters() {}

  /// Lets go of the gradients: it makes no step any more, and what it keeps is still there.
  virtual void forget_gradients() = 0;
  /// It makes steps again, with the gradients of the same groups, as groups_for() has them now.
  virtual void take_gradients(std::vector<ParameterGroup> groups) = 0;
};

/// The groups that make_optimizer() makes an optimizer for.
std::vector<ParameterGroup> groups_for(OptimizerKind kind, const std::vector<v1::Parameter>& parameters,
                                       const std::vector<v1::Group>& groups,
                                       const std::optional<ShareOfRank>& share);

/// That of `kind`, for parameters that have their grads already. `groups`: those that parameters are in by
/// name; one that isn't there throws std::invalid_argument. `share`: what of them this rank updates; nothing:
/// all. Not of muon, which needs whole matrices. Parameters may be float32 or, with MasterWeights, bfloat16;
/// gradients are float32. `device` outlives it.
std::unique_ptr<Optimizer> make_optimizer(OptimizerKind kind, const std::vector<v1::Parameter>& parameters,
                                          const std::vector<v1::Group>& groups, ComputeDevice& device,
                                          const std::optional<ShareOfRank>& share = {});

}  // namespace footplate
