#pragma once

#include <ATen/core/Tensor.h>

#include <optional>
#include <string>
#include <vector>

#include "footplate/task.h"
#include "runtime/comm/shares.h"
#include "runtime/optim/gradient_layout.h"
#include "runtime/state/state_table.h"

namespace footplate {

/// Parameters that an optimizer treats alike.
struct ParameterGroup {
  bool decays = false;                   ///< by optim.weight_decay
  std::optional<double> own_decay = {};  ///< in place of it
  double lr_factor = 1;
  bool orthogonal = false;  ///< muon's own: matrices that aren't tables
  std::vector<std::string> names = {};
  std::vector<at::Tensor> values = {}, gradients = {};
  /// Where they are some elements of a parameter, which; empty: they are whole ones.
  std::vector<ShardOf> shards = {};
  /// Parameters that are other ranks' alone.
  struct Elsewhere {
    std::string name;
    std::vector<std::int64_t> shape;
    at::ScalarType type = at::kFloat;
  };
  std::vector<Elsewhere> elsewhere = {};

  double decay(double weight_decay) const { return own_decay.value_or(decays ? weight_decay : 0.0); }
};

/// What of the parameters a rank updates, where the ranks share that work (optim.shard): those elements whose
/// gradients lie in its blocks of a layout.
struct ShareOfRank {
  const GradientLayout* layout = nullptr;  ///< outlives it
  std::vector<Stretch> blocks = {};        ///< in order
  at::Tensor gradients = {};               ///< of the whole layout, or of the blocks, one after the other

  /// Those of some elements, which are in one block.
  at::Tensor gradient(const Stretch& elements) const;
};

/// Of whole groups what the share has, as one-dimensional pieces; a group of which it has nothing has no
/// values.
std::vector<ParameterGroup> cut(const std::vector<ParameterGroup>& groups, const ShareOfRank& share);

/// All parameters as one group, whatever groups they are in.
ParameterGroup all_of(const std::vector<v1::Parameter>& parameters);

/// The parameters, by what their groups say; those of no declared group come first: matrices, then others.
/// One that isn't empty at least. `declared`: a group that a parameter is in by name and that isn't there
/// throws std::invalid_argument. `apart`: muon's own are groups of their own.
std::vector<ParameterGroup> grouped(const std::vector<v1::Parameter>& parameters,
                                    const std::vector<v1::Group>& declared, bool apart);

}  // namespace footplate
