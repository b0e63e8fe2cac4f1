#include "runtime/optim/state_entry.h"

#include <utility>

namespace footplate {
namespace {

DataType type_of(const at::Tensor& tensor) {
  switch (tensor.scalar_type()) {
    case at::kDouble:
      return DataType::float64;
    case at::kLong:
      return DataType::int64;
    case at::kByte:
    case at::kBool:
      return DataType::uint8;
    case at::kBFloat16:
      return DataType::bfloat16;
    default:
      return DataType::float32;
  }
}

/// Of a group of shards it is one, too.
StateEntry part_of(const ParameterGroup& group, std::size_t i, StateEntry entry) {
  if (group.shards.empty()) return entry;
  entry.placement = Placement::sharded;
  entry.shard = group.shards[i];
  return entry;
}

}  // namespace

StateEntry state_entry(std::string name, const at::Tensor& tensor, ComputeDevice& device) {
  return {std::move(name),           type_of(tensor), tensor.sizes().vec(), Placement::replicated,
          tensor.mutable_data_ptr(), tensor.nbytes(), device.state_memory()};
}

StateEntry state_entry(const std::string& kind, const ParameterGroup& group, std::size_t i,
                       const at::Tensor& tensor, ComputeDevice& device) {
  return part_of(group, i, state_entry("optim/" + kind + "/" + group.names[i], tensor, device));
}

StateEntry value_entry(const ParameterGroup& group, std::size_t i, ComputeDevice& device) {
  return part_of(group, i, state_entry("model/" + group.names[i], group.values[i], device));
}

void add_elsewhere(StateTable& table, const std::string& kind, const ParameterGroup& group) {
  for (const ParameterGroup::Elsewhere& one : group.elsewhere) {
    StateEntry entry;
    entry.name = "optim/" + kind + "/" + one.name;
    entry.shape = {0};
    entry.placement = Placement::sharded;
    entry.shard = ShardOf{one.shape, 0};
    table.add(std::move(entry));
  }
}

}  // namespace footplate
