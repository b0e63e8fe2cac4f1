#pragma once

#include <ATen/core/Tensor.h>

#include <optional>
#include <string>
#include <vector>

#include "footplate/task.h"

namespace footplate {

/// Parameters that an optimizer treats alike.
struct ParameterGroup {
  bool decays = false;                   ///< by optim.weight_decay
  std::optional<double> own_decay = {};  ///< in place of it
  double lr_factor = 1;
  bool orthogonal = false;  ///< muon's own: matrices that aren't tables
  std::vector<std::string> names = {};
  std::vector<at::Tensor> values = {}, gradients = {};

  double decay(double weight_decay) const { return own_decay.value_or(decays ? weight_decay : 0.0); }
};

/// The parameters, by what their groups say; those of no declared group come first: matrices, then others.
/// One that isn't empty at least. `declared`: a group that a parameter is in by name and that isn't there
/// throws std::invalid_argument. `apart`: muon's own are groups of their own.
std::vector<ParameterGroup> grouped(const std::vector<v1::Parameter>& parameters,
                                    const std::vector<v1::Group>& declared, bool apart);

}  // namespace footplate
