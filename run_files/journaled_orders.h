#pragma once

#include <cstdint>
#include <filesystem>
#include <set>
#include <string_view>
#include <vector>

namespace footplate {

/// How the journal marks an entry, and the part of a start (docs/lua.md): "-- order 3 · ann · …".
inline constexpr std::string_view kJournalOrder = "-- order ";
inline constexpr std::string_view kJournalStart = "-- start ";

/// The ids of all orders in journal.lua.
std::set<std::uint64_t> journaled_orders(const std::filesystem::path& journal);

/// The largest of them; 0: none. Ids of a later start go on from there, so that a number means one order in
/// all of a run's files.
std::uint64_t last_journaled_order(const std::filesystem::path& journal);

/// Where an order stands among those that were applied.
struct AppliedAt {
  std::uint64_t id = 0;
  std::int64_t step = 0;
};

/// How many of `applied`, in the order of application, a checkpoint of `step` holds whose last order was
/// `last` (0: none): up to the last entry with that id. That is not the order of ids: an order for a later
/// step is applied after younger ones. The journal may lack `last`, as its disk was full: then steps and ids
/// decide.
std::size_t held_by_checkpoint(const std::vector<AppliedAt>& applied, std::uint64_t last, std::int64_t step);

}  // namespace footplate
