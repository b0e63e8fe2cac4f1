#include "runtime/optim/momenta.h"

#include <ATen/ops/zeros_like.h>

#include <cstddef>
#include <utility>

#include "runtime/optim/state_entry.h"

namespace footplate {

std::vector<Momenta> Momenta::of(std::vector<ParameterGroup> groups) {
  std::vector<Momenta> parts;
  for (ParameterGroup& group : groups) {
    Momenta& part = parts.emplace_back(Momenta{std::move(group), {}});
    for (const at::Tensor& value : part.group.values) part.means.push_back(at::zeros_like(value));
  }
  return parts;
}

void Momenta::list_state(const std::vector<Momenta>& parts, StateTable& table, ComputeDevice& device) {
  for (const Momenta& part : parts)
    for (std::size_t i = 0; i < part.means.size(); ++i)
      table.add(state_entry("optim/momentum/" + part.group.names[i], part.means[i], device));
}

}  // namespace footplate
