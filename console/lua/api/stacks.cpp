#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include "console/client/render/render.h"
#include "console/lua/api/api.h"
#include "console/lua/core/bind.h"
#include "console/lua/core/listing.h"
#include "console/lua/session/session.h"
#include "protocol/messages/reports.h"

// ranks.stacks(): where every thread of the ranks is, taken without the training thread.

namespace footplate::lua {
namespace {

std::string thread_heading(const ThreadPlace& thread, std::size_t more) {
  std::string text = "  " + thread.name;
  if (thread.tid != 0) text += " (" + std::to_string(thread.tid) + ", " + thread.state + ")";
  if (more > 0) text += ", and " + std::to_string(more) + " more there";
  if (!thread.note.empty()) text += ": " + thread.note;
  return text + "\n";
}

/// Threads of a pool mostly wait in the same place: of one name and one stack the first is shown.
std::string threads_text(const std::vector<ThreadPlace>& threads) {
  std::vector<std::pair<const ThreadPlace*, std::size_t>> shown;  ///< with how many more are like it
  std::map<std::tuple<std::string, std::vector<std::string>, std::string>, std::size_t> places;
  for (const ThreadPlace& thread : threads) {
    const auto [found, is_new] = places.try_emplace({thread.name, thread.frames, thread.note}, shown.size());
    if (is_new)
      shown.emplace_back(&thread, 0);
    else
      ++shown[found->second].second;
  }
  std::string text;
  for (const auto& [thread, more] : shown) {
    text += thread_heading(*thread, more);
    for (const std::string& frame : thread->frames) text += "    " + frame + "\n";
  }
  return text;
}

std::string stacks_text(const std::vector<RankStacks>& ranks) {
  std::string text;
  for (const RankStacks& rank : ranks) {
    text += "rank " + std::to_string(rank.rank);
    if (rank.silent_s)
      text += " doesn't answer, last heard of " + rounded(*rank.silent_s, 2) + " s ago: " + rank.text + "\n";
    else
      text += "\n" + threads_text(rank.threads);
  }
  return text;
}

int ranks_stacks(lua_State* state) {
  request::Stacks asked;
  if (!lua_isnoneornil(state, 1)) asked.rank = luaL_checkinteger(state, 1);
  const auto report = session_of(state).look_at_ranks(asked);
  push_listing(state, list_of(report.ranks), without_newline(stacks_text(report.ranks)));
  return 1;
}

constexpr Registration kStackFunctions[] = {
    {.doc = {.name = "ranks.stacks",
             .role = Role::view,
             .example = "ranks.stacks()",
             .help = "where every thread of every rank is, frame by frame, also while training hangs; "
                     "ranks.stacks(2) of one rank",
             .in_overview = true},
     .handler = bound<ranks_stacks>},
};

}  // namespace

std::span<const Registration> stack_functions() {
  return kStackFunctions;
}

}  // namespace footplate::lua
