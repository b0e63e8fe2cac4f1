#include "runtime/state/state_table.h"

#include <xxhash.h>

#include <algorithm>
#include <array>
#include <cassert>
#include <cinttypes>
#include <cstdio>
#include <cstring>
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

std::span<const std::byte> StateEntry::on_host(std::vector<std::byte>& room) const {
  if (memory == nullptr) return {static_cast<const std::byte*>(data), bytes};
  if (room.size() < bytes) room.resize(bytes);
  memory->copy_out(room.data(), data, bytes);
  return {room.data(), bytes};
}

void StateEntry::copy_to(std::span<std::byte> to, std::size_t from) const {
  assert(from <= bytes && to.size() <= bytes - from);
  if (to.empty()) return;
  const std::byte* first = static_cast<const std::byte*>(data) + from;
  if (memory == nullptr)
    std::memcpy(to.data(), first, to.size());
  else
    memory->copy_out(to.data(), first, to.size());
}

std::uint64_t StateEntry::hash(std::vector<std::byte>& room) const {
  const auto content = on_host(room);
  return XXH3_64bits(content.data(), content.size());
}

void StateEntry::take(std::span<const std::byte> from, std::size_t at) const {
  assert(at <= bytes && from.size() <= bytes - at);
  if (from.empty()) return;
  std::byte* first = static_cast<std::byte*>(data) + at;
  if (memory == nullptr)
    std::memcpy(first, from.data(), from.size());
  else
    memory->copy_in(first, from.data(), from.size());
}

void StateTable::add(StateEntry entry) {
  assert(find(entry.name) == nullptr || entry.shard.has_value());
  assert(entry.shard.has_value() == (entry.placement == Placement::sharded));
  assert(bytes_of(entry) == entry.bytes);
  entries_.push_back(std::move(entry));
}

void StateTable::remove(std::string_view prefix) {
  std::erase_if(entries_, [prefix](const StateEntry& entry) { return entry.name.starts_with(prefix); });
}

const StateEntry* StateTable::find(std::string_view name) const {
  for (const StateEntry& entry : entries_)
    if (entry.name == name) return &entry;
  return nullptr;
}

bool StateTable::is_sharded() const {
  return std::any_of(entries_.begin(), entries_.end(),
                     [](const StateEntry& entry) { return entry.placement == Placement::sharded; });
}

std::uint64_t StateTable::hash() const {
  const std::unique_ptr<XXH3_state_t, decltype(&XXH3_freeState)> state(XXH3_createState(), XXH3_freeState);
  XXH3_64bits_reset(state.get());
  std::vector<std::byte> room;
  for (const StateEntry& entry : entries_) {
    if (entry.placement != Placement::replicated) continue;
    XXH3_64bits_update(state.get(), entry.name.data(), entry.name.size());
    const auto bytes = entry.on_host(room);
    XXH3_64bits_update(state.get(), bytes.data(), bytes.size());
  }
  return XXH3_64bits_digest(state.get());
}

std::optional<std::string> StateTable::hash_if_readable() const {
  try {
    std::array<char, 17> text{};
    std::snprintf(text.data(), text.size(), "%016" PRIx64, hash());
    return text.data();
  } catch (const std::exception&) {
    return std::nullopt;
  }
}

}  // namespace footplate
