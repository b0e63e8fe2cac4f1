#include <map>
#include <utility>
#include <vector>

#include "console/client/render/render.h"
#include "console/lua/api/api.h"
#include "console/lua/core/bind.h"
#include "console/lua/core/listing.h"
#include "console/lua/session/session.h"

// ranks.stacks(): where every thread of the ranks is, taken without the training thread.

namespace footplate::lua {
namespace {

std::string thread_heading(const Json& thread, std::size_t more) {
  std::string text = "  " + thread.value("name", "");
  if (const auto tid = thread.value("tid", 0); tid != 0)
    text += " (" + std::to_string(tid) + ", " + thread.value("state", "") + ")";
  if (more > 0) text += ", and " + std::to_string(more) + " more there";
  if (const auto note = thread.value("note", ""); !note.empty()) text += ": " + note;
  return text + "\n";
}

/// Threads of a pool mostly wait in the same place: of one name and one stack the first is shown.
std::string threads_text(const Json& threads) {
  std::vector<std::pair<const Json*, std::size_t>> shown;  ///< with how many more are like it
  std::map<std::string, std::size_t> places;
  for (const Json& thread : threads) {
    const std::string like =
        thread.value("name", "") + thread.value("frames", Json::array()).dump() + thread.value("note", "");
    const auto [found, is_new] = places.try_emplace(like, shown.size());
    if (is_new)
      shown.emplace_back(&thread, 0);
    else
      ++shown[found->second].second;
  }
  std::string text;
  for (const auto& [thread, more] : shown) {
    text += thread_heading(*thread, more);
    for (const Json& frame : thread->value("frames", Json::array()))
      text += "    " + frame.get<std::string>() + "\n";
  }
  return text;
}

std::string stacks_text(const Json& ranks) {
  std::string text;
  for (const Json& rank : ranks) {
    text += "rank " + std::to_string(rank.value("rank", 0));
    if (rank.contains("silent_s"))
      text += " doesn't answer, last heard of " + rounded(rank.value("silent_s", 0.0), 2) +
              " s ago: " + rank.value("text", "") + "\n";
    else
      text += "\n" + threads_text(rank.value("threads", Json::array()));
  }
  return text;
}

int ranks_stacks(lua_State* state) {
  Json asked = Json::object();
  if (!lua_isnoneornil(state, 1)) asked["rank"] = luaL_checkinteger(state, 1);
  const Json ranks = session_of(state).look("stacks", asked).value("ranks", Json::array());
  push_listing(state, ranks, without_newline(stacks_text(ranks)));
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
