#pragma once

#include <cstdint>
#include <lua.hpp>
#include <string>
#include <utility>
#include <vector>

#include "console/lua/core/table_options.h"

namespace footplate::lua {

class Session;

/// Settings and what they are to be.
using Changes = std::vector<std::pair<std::string, Json>>;

/// The field of a trial's table that decides.
inline constexpr auto kKeepIf = "keep_if";

/// What every trial's table has.
struct TrialPlan {
  Changes changes;
  std::int64_t steps = 0;    ///< measured on either side
  double better_by = 0;      ///< as a part of what is measured
  bool has_keep_if = false;  ///< a function of the table decides
};

/// What a trial measures on either side of its change, and how it judges that. The functions may wait, and
/// throw ScriptError.
class Measurement {
 public:
  virtual ~Measurement() = default;
  virtual void measure_before() = 0;
  virtual void measure_after() = 0;

  // Of what was measured last.

  /// It was ended before its time, so that the change is put back.
  virtual bool was_abandoned() const { return false; }
  /// Where no keep_if decides.
  virtual bool is_better() const = 0;
  /// What came of it, a line.
  virtual std::string text(const Changes& changes, bool kept) const = 0;
  // Data for the script.
  virtual Json before() const = 0;
  virtual Json after() const = 0;
};

/// What came of a trial.
struct Tried {
  bool kept = false;
  std::string text;  ///< a line
};

/// A trial whose `measurement` has measured what is before: makes the changes as an order, measures again,
/// and puts back what was before where that isn't better. An error of any of them, Ctrl-C too, puts it back
/// first. A setting that somebody else changes meanwhile is left as that one wants it, by an error. Its text
/// goes into the journal and to everybody who is attached. The trial's table is at stack index 1.
Tried run_trial(lua_State* state, const TrialPlan& plan, Measurement& measurement);

/// Pushes what a script gets of it, with these fields besides.
void push_tried(lua_State* state, const Measurement& measurement, const Tried& tried,
                Json fields = Json::object());

/// "optim.lr_scale = 0.5, nccl.rules = tree"
std::string changes_text(const Changes& changes);

/// A number of a trial for people: two decimals, or three significant digits below 1.
std::string number_text(double value);

/// One call of an action, waited for: its result. Throws ScriptError.
Json run_call(Session& session, const std::string& action, const Json& arguments);

/// Whether they could be made. Throws ScriptError.
void check_changes(Session& session, const Changes& changes);

/// A line in the journal and for everybody who is attached.
void note(Session& session, const std::string& text);

/// The table at stack index 1 as JSON, whose fields are among `known`, and whose keep_if is a function of
/// `of_what`; both it and better_by is an error. Throws ScriptError, which names `function`.
Json trial_arguments(lua_State* state, const std::vector<std::string>& known, const char* of_what,
                     const std::string& function);

/// Fields of a trial's table. Throw ScriptError, which names the function.
std::int64_t trial_steps(const TableOptions& options, const char* key, std::int64_t otherwise);
double better_by_of(const TableOptions& options, double otherwise);

/// Whether field `name` of the table at 1 is there; it has to be a function then. Throws ScriptError.
bool has_function(lua_State* state, const char* name, const char* of_what);

/// Whether that function says yes to `arguments`. Throws ScriptError where it fails.
bool says_yes(lua_State* state, const char* name, const std::vector<Json>& arguments);

}  // namespace footplate::lua
