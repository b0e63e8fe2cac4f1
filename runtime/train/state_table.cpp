#include "runtime/train/state_table.h"

#include <xxhash.h>

#include <cassert>
#include <functional>
#include <memory>
#include <numeric>

namespace footplate {
namespace {

[[maybe_unused]] std::size_t bytes_of(const StateEntry& entry) {
  return std::accumulate(
      entry.shape.begin(), entry.shape.end(), size_of(entry.type),
      [](std::size_t bytes, std::int64_t extent) { return bytes * static_cast<std::size_t>(extent); });
}

}  // namespace

void StateTable::add(StateEntry entry) {
  assert(find(entry.name) == nullptr);
  assert(bytes_of(entry) == entry.bytes);
  entries_.push_back(std::move(entry));
}

const StateEntry* StateTable::find(std::string_view name) const {
  for (const StateEntry& entry : entries_)
    if (entry.name == name) return &entry;
  return nullptr;
}

std::uint64_t StateTable::hash() const {
  const std::unique_ptr<XXH3_state_t, decltype(&XXH3_freeState)> state(XXH3_createState(), XXH3_freeState);
  XXH3_64bits_reset(state.get());
  for (const StateEntry& entry : entries_) {
    if (entry.placement != Placement::replicated) continue;
    XXH3_64bits_update(state.get(), entry.name.data(), entry.name.size());
    XXH3_64bits_update(state.get(), entry.data, entry.bytes);
  }
  return XXH3_64bits_digest(state.get());
}

}  // namespace footplate
