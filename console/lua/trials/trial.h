#pragma once

#include <functional>
#include <lua.hpp>
#include <string>
#include <utility>
#include <vector>

#include "protocol/json.h"

namespace footplate::lua {

class Session;

/// Settings and what they are to be.
using Changes = std::vector<std::pair<std::string, Json>>;

/// The field of a trial's table that decides.
inline constexpr auto kKeepIf = "keep_if";

/// "optim.lr_scale = 0.5, nccl.rules = tree"
std::string text_of(const Changes& changes);

/// A number of a trial for people: two decimals, or three significant digits below 1.
std::string number_text(double value);

/// One call of an action, waited for: its result. Throws ScriptError.
Json run_call(Session& session, const std::string& action, const Json& arguments);

/// Measurements before and after a change: data for the script.
struct Tried {
  Json before, after;
  bool kept = false;
};

/// Whether they could be made. Throws ScriptError.
void check_changes(Session& session, const Changes& changes);

/// Makes `changes` as an order, measures, asks `keep`, and puts back what was before where it says no. An
/// error of any of them, Ctrl-C too, puts it back first. A setting that somebody else changes meanwhile is
/// left as that one wants it, by an error.
Tried try_out(Session& session, const Changes& changes, const Json& before,
              const std::function<Json()>& measure,
              const std::function<bool(const Json& before, const Json& after)>& keep);

/// A line in the journal and for everybody who is attached.
void note(Session& session, const std::string& text);

/// Fields of a trial's table. Throw ScriptError, which names `function`.
std::int64_t trial_steps(const Json& arguments, const char* key, std::int64_t otherwise,
                         const std::string& function);
double better_by_of(const Json& arguments, double otherwise, const std::string& function);

/// Whether field `name` of the table at 1 is there; it has to be a function then. Throws ScriptError.
bool has_function(lua_State* state, const char* name, const char* of_what);

/// Whether that function says yes to `arguments`. Throws ScriptError where it fails.
bool says_yes(lua_State* state, const char* name, const std::vector<Json>& arguments);

}  // namespace footplate::lua
