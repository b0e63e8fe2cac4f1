#include <algorithm>
#include <array>
#include <limits>

#include "console/client/render/render.h"
#include "console/lua/api/api.h"
#include "console/lua/core/bind.h"
#include "console/lua/core/convert.h"
#include "console/lua/core/listing.h"
#include "console/lua/core/metric_names.h"
#include "console/lua/core/table_options.h"
#include "console/lua/session/session.h"

// run.wait{}, run.step, …: of the run itself, and nothing that a schema describes.

namespace footplate::lua {
namespace {

/// What run.wait{} is asked for: one of step, event and seconds.
struct RunWait {
  std::optional<std::int64_t> step;
  std::optional<std::string> event;
  std::optional<double> seconds;
  std::optional<double> timeout_s;
};

RunWait read_wait(const Json& table) {
  constexpr const char* kTakes =
      "run.wait takes one of step, event and seconds, and timeout_s, as in run.wait{ step = 30000 }";
  constexpr double kLastStep = 9e15;  // beyond any run, and a whole number in either type
  constexpr std::array<std::string_view, 4> kKnown = {"step", "event", "seconds", "timeout_s"};
  for (const auto& [key, value] : table.items()) {
    const bool is_text = key == "event";
    if (std::ranges::find(kKnown, key) == kKnown.end() || !(is_text ? value.is_string() : value.is_number()))
      throw ScriptError(kTakes);
    if (!is_text && key != "step" && value < 0)
      throw ScriptError("run.wait can't wait for " + key + " = " + value.dump() + ": 0 or more");
  }
  const TableOptions options(table);
  constexpr TableOptions::Bounds kAny{.least = -std::numeric_limits<double>::infinity(),
                                      .most = std::numeric_limits<double>::infinity()};
  RunWait wait{{},
               options.text("event", kTakes),
               options.number("seconds", kAny, kTakes),
               options.number("timeout_s", kAny, kTakes)};
  if (const auto step = options.number("step", kAny, kTakes))
    wait.step = static_cast<std::int64_t>(std::clamp(*step, -kLastStep, kLastStep));
  const int asked = (wait.step ? 1 : 0) + (wait.event ? 1 : 0) + (wait.seconds ? 1 : 0);
  if (asked == 1 && wait.seconds && wait.timeout_s)
    throw ScriptError("run.wait{ seconds = … } ends by itself; timeout_s is for step and event");
  if (asked != 1)
    throw ScriptError("run.wait needs one of step, event and seconds: run.wait{ step = 30000 }");
  return wait;
}

PlaceReached ask_wait(Session& session, const RunWait& wait) {
  const Waiting waiting(session.activity().clock);
  if (wait.seconds) return session.ask(request::WaitSeconds{*wait.seconds});
  if (wait.event) return session.ask(request::WaitEvent{*wait.event, wait.timeout_s});
  return session.ask(request::WaitStep{wait.step.value_or(0), wait.timeout_s});
}

/// run.wait{ step = 30000 }, { event = "eval" }, { seconds = 60 }: until the run has come that far.
int run_wait(lua_State* state) {
  Session& session = session_of(state);
  luaL_checktype(state, 1, LUA_TTABLE);
  const RunWait wait = read_wait(json_at(state, 1));
  session.begin_wait("run.wait");
  const PlaceReached reached = ask_wait(session, wait);
  if (reached.timed_out)
    throw ScriptError((wait.step ? "step " + std::to_string(*wait.step) + " not reached"
                                 : "no event '" + wait.event.value_or("") + "'") +
                          " within " + shortest(wait.timeout_s.value_or(0)) + " s; the run is at step " +
                          std::to_string(reached.step),
                      ErrorKind::timed_out);
  if (wait.event && from_word<RuleEvent>(*wait.event) == RuleEvent::log)
    push_metrics_table(state, reached.event);
  else
    push_json(state, wait.event ? reached.event : Json(reached.step));
  return 1;
}

int run_name(lua_State* state) {
  push_text(state, session_of(state).greeting().run.name);
  return 1;
}

int run_branch(lua_State* state) {
  push_text(state, session_of(state).greeting().run.branch);
  return 1;
}

int run_id(lua_State* state) {
  push_text(state, session_of(state).greeting().run.id);
  return 1;
}

int run_resumed(lua_State* state) {
  lua_pushboolean(state, session_of(state).greeting().resumed ? 1 : 0);
  return 1;
}

int run_step(lua_State* state) {
  lua_pushinteger(state, session_of(state).look(request::Status{}).step);
  return 1;
}

int run_state(lua_State* state) {
  push_text(state, to_string(session_of(state).look(request::Status{}).state));
  return 1;
}

/// run.left(): until train.steps, at the pace of now.
int run_left(lua_State* state) {
  Session& session = session_of(state);
  const auto status = session.look(request::Status{});
  const std::int64_t last = session.settings().integer("train.steps");
  const std::int64_t steps = std::max<std::int64_t>(0, last - status.step);
  Json left = {{"steps", steps}};
  std::string text = std::to_string(steps) + " steps";
  if (status.eta_s && *status.eta_s >= 0) {
    left["seconds"] = *status.eta_s;
    text += ", " + duration(*status.eta_s);
  }
  push_listing(state, left, text);
  return 1;
}

constexpr Registration kRunFunctions[] = {
    {.doc = {.name = "run",
             .role = Role::view,
             .help = "run.wait{ step = 30000 } waits until then, also event = \"eval\", seconds = 60; "
                     "run.stop_when(function(m) … end); run.left() run.name run.branch run.id run.step "
                     "run.state run.resumed",
             .in_overview = true},
     .form = Form::text},
    {.doc = {.name = "run.wait",
             .role = Role::view,
             .example = "run.wait{ step = 30000 }",
             .help = "until the run has come that far; also event = \"eval\", each with timeout_s = 60; "
                     "seconds = 60"},
     .handler = bound<run_wait>},
    {.doc = {.name = "run.stop_when",
             .role = Role::operate,
             .example = "run.stop_when(function(m) return m[\"train/loss\"] < 1.2 end)",
             .help = "a rule that ends the run, with the newest metrics; before the first evaluation "
                     "m[\"eval/loss\"] is nil"},
     .handler = bound<register_stop_when>},
    {.doc = {.name = "run.left",
             .role = Role::view,
             .example = "run.left()",
             .help = "the steps until train.steps, and the seconds that they take at the pace of now; "
                     "run.left().seconds is nil while that isn't known"},
     .handler = bound<run_left>},
    {.doc = {.name = "run.resumed",
             .role = Role::view,
             .help = "in a job script: whether it is run again, after a resume"},
     .form = Form::field,
     .handler = bound<run_resumed>},
    {.doc = {.name = "run.name", .role = Role::view, .help = "name of the run"},
     .form = Form::field,
     .handler = bound<run_name>},
    {.doc = {.name = "run.branch",
             .role = Role::view,
             .help = "name of the branch: main, or what ckpt.load has opened"},
     .form = Form::field,
     .handler = bound<run_branch>},
    {.doc = {.name = "run.id", .role = Role::view, .help = "id of this start"},
     .form = Form::field,
     .handler = bound<run_id>},
    {.doc = {.name = "run.step", .role = Role::view, .help = "the step that the run is at"},
     .form = Form::field,
     .handler = bound<run_step>},
    {.doc = {.name = "run.state",
             .role = Role::view,
             .help = "starting running paused evaluating saving recovering ending ended"},
     .form = Form::field,
     .handler = bound<run_state>},
};

}  // namespace

std::span<const Registration> run_functions() {
  return kRunFunctions;
}

}  // namespace footplate::lua
