#include "runtime/optim/optimizer.h"

#include "runtime/optim/adamw.h"
#include "runtime/optim/lion.h"
#include "runtime/optim/master_weights.h"
#include "runtime/optim/muon.h"
#include "runtime/optim/parameter_group.h"
#include "runtime/optim/sgd.h"

namespace footplate {
namespace {

std::unique_ptr<Optimizer> of_floats(OptimizerKind kind, std::vector<ParameterGroup> parts,
                                     ComputeDevice& device) {
  switch (kind) {
    case OptimizerKind::adamw:
      break;
    case OptimizerKind::sgd:
      return std::make_unique<Sgd>(std::move(parts), device);
    case OptimizerKind::lion:
      return std::make_unique<Lion>(std::move(parts), device);
    case OptimizerKind::muon:
      return std::make_unique<Muon>(std::move(parts), device);
  }
  return std::make_unique<AdamW>(std::move(parts), device);
}

}  // namespace

std::vector<ParameterGroup> groups_for(OptimizerKind kind, const std::vector<v1::Parameter>& parameters,
                                       const std::vector<v1::Group>& groups,
                                       const std::optional<ShareOfRank>& share) {
  auto parts = grouped(parameters, groups, kind == OptimizerKind::muon);
  return share ? cut(parts, *share) : parts;
}

std::unique_ptr<Optimizer> make_optimizer(OptimizerKind kind, const std::vector<v1::Parameter>& parameters,
                                          const std::vector<v1::Group>& groups, ComputeDevice& device,
                                          const std::optional<ShareOfRank>& share) {
  auto parts = groups_for(kind, parameters, groups, share);
  if (!has_bf16(parts)) return of_floats(kind, std::move(parts), device);
  return std::make_unique<MasterWeights>(std::move(parts), device, [&](std::vector<ParameterGroup> masters) {
    return of_floats(kind, std::move(masters), device);
  });
}

}  // namespace footplate
