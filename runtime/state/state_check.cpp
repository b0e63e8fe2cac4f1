#include "runtime/state/state_check.h"

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/comm/agree.h"

namespace footplate {
namespace {

/// A line for each tensor, its name last.
std::string list_of(const StateTable& state) {
  std::string list;
  std::vector<std::byte> room;
  for (const StateEntry& entry : state.entries()) {
    if (entry.placement != Placement::replicated) continue;
    char hash[17];
    std::snprintf(hash, sizeof(hash), "%016llx", static_cast<unsigned long long>(entry.hash(room)));
    list += std::string(hash) + " " + entry.name + "\n";
  }
  return list;
}

std::string_view take_line(std::string_view& list) {
  const auto line = list.substr(0, list.find('\n'));
  list.remove_prefix(std::min(line.size() + 1, list.size()));
  return line;
}

std::string name_in(std::string_view line) {
  return line.empty() ? "nothing" : std::string(line.substr(std::min(line.find(' ') + 1, line.size())));
}

/// The first tensor of `mine` that is another one in `first`; empty: none.
std::string difference(std::string_view first, std::string_view mine) {
  while (!first.empty() || !mine.empty()) {
    const auto here = take_line(mine), there = take_line(first);
    if (here == there) continue;
    return name_in(here) + (name_in(here) == name_in(there) ? "" : " in place of " + name_in(there));
  }
  return {};
}

}  // namespace

Result<void> same_state(Communicator& communicator, const StateTable& state) {
  if (communicator.world_size() == 1) return {};
  const auto differing = ranks_with_another(communicator, state.hash(), "initial states");
  if (!differing) return tl::unexpected(differing.error());
  if (differing->empty()) return {};
  const std::string mine = list_of(state);
  const auto first = from_rank(communicator, 0, mine);
  if (!first) return tl::unexpected(first.error());
  const auto others = gather_reasons(communicator, difference(*first, mine));
  if (!others) return tl::unexpected(others.error());
  return fail(
      ErrorKind::usage,
      "the ranks begin with different parameters. The first tensor that isn't as on rank 0: " + *others +
          ". Make all random numbers of the task follow from host.seed(), none from the time, a "
          "process id or the rank");
}

}  // namespace footplate
