#include "runtime/optim/parameter_group.h"

#include <algorithm>
#include <stdexcept>

namespace footplate {
namespace {

const v1::Group& declared_group(const v1::Parameter& parameter, const std::vector<v1::Group>& declared) {
  static const v1::Group kNone;
  if (parameter.group.empty()) return kNone;
  const auto found = std::ranges::find(declared, parameter.group, &v1::Group::name);
  if (found == declared.end())
    throw std::invalid_argument("the parameter '" + parameter.name + "' is in the group '" + parameter.group +
                                "', and groups() has none of that name");
  return *found;
}

bool alike(const ParameterGroup& one, const ParameterGroup& other) {
  return one.decays == other.decays && one.own_decay == other.own_decay && one.lr_factor == other.lr_factor &&
         one.orthogonal == other.orthogonal;
}

}  // namespace

ParameterGroup all_of(const std::vector<v1::Parameter>& parameters) {
  ParameterGroup all;
  for (const v1::Parameter& parameter : parameters) {
    all.names.push_back(parameter.name);
    all.values.push_back(parameter.tensor.detach());
    all.gradients.push_back(parameter.tensor.grad());
  }
  return all;
}

std::vector<ParameterGroup> grouped(const std::vector<v1::Parameter>& parameters,
                                    const std::vector<v1::Group>& declared, bool apart) {
  std::vector<ParameterGroup> groups;
  const auto group_like = [&groups](const ParameterGroup& like) -> ParameterGroup& {
    const auto found =
        std::ranges::find_if(groups, [&](const ParameterGroup& group) { return alike(group, like); });
    return found != groups.end() ? *found : groups.emplace_back(like);
  };
  group_like({.decays = true, .orthogonal = apart});
  group_like({});
  for (const v1::Parameter& parameter : parameters) {
    const v1::Group& told = declared_group(parameter, declared);
    const bool is_matrix = parameter.tensor.dim() >= 2;
    ParameterGroup& group = group_like({.decays = is_matrix && !told.weight_decay,
                                        .own_decay = told.weight_decay,
                                        .lr_factor = told.lr_factor,
                                        .orthogonal = apart && is_matrix && !told.is_table});
    group.names.push_back(parameter.name);
    group.values.push_back(parameter.tensor.detach());
    group.gradients.push_back(parameter.tensor.grad());
  }
  std::erase_if(groups, [](const ParameterGroup& group) { return group.values.empty(); });
  return groups;
}

at::Tensor ShareOfRank::gradient(const Stretch& elements) const {
  if (gradients.numel() == layout->elements()) return gradients.slice(0, elements.first, elements.end);
  const auto block = std::ranges::upper_bound(blocks, elements.first, {}, &Stretch::end);
  const std::int64_t before =
      (block - blocks.begin()) * blocks.front().size();  // the last one may be smaller
  return gradients.narrow(0, before + elements.first - block->first, elements.size());
}

std::vector<ParameterGroup> cut(const std::vector<ParameterGroup>& groups, const ShareOfRank& share) {
  std::vector<ParameterGroup> pieces;
  for (const ParameterGroup& group : groups) {
    ParameterGroup mine = group;
    mine.names.clear();
    mine.values.clear();
    mine.gradients.clear();
    for (std::size_t i = 0; i < group.values.size(); ++i) {
      const at::Tensor value = group.values[i].view({-1});
      const Stretch whole = share.layout->of(group.names[i]);
      const auto parts = within(whole, share.blocks);
      if (parts.empty())
        mine.elsewhere.push_back(
            {group.names[i], group.values[i].sizes().vec(), group.values[i].scalar_type()});
      for (const Stretch& part : parts) {
        mine.names.push_back(group.names[i]);
        mine.values.push_back(value.slice(0, part.first - whole.first, part.end - whole.first));
        mine.gradients.push_back(share.gradient(part));
        mine.shards.push_back({group.values[i].sizes().vec(), part.first - whole.first});
      }
    }
    pieces.push_back(std::move(mine));
  }
  return pieces;
}

}  // namespace footplate
