#include "console/client/render/render.h"
#include "console/lua/api/api.h"
#include "console/lua/core/bind.h"
#include "console/lua/core/convert.h"
#include "console/lua/core/listing.h"
#include "console/lua/session/session.h"

// run.wait{}, run.step, …: of the run itself, and nothing that a schema describes.

namespace footplate::lua {
namespace {

/// Which of step, event and seconds run.wait is asked for.
std::string waited_for(const Json& arguments) {
  std::string what;
  for (const auto& [key, value] : arguments.items()) {
    const bool number = key == "step" || key == "seconds" || key == "timeout_s";
    if (!(number ? value.is_number() : key == "event" && value.is_string()))
      throw ScriptError(
          "run.wait takes one of step, event and seconds, and timeout_s, as in run.wait{ step = 30000 }");
    if (number && key != "step" && value < 0)
      throw ScriptError("run.wait can't wait for " + key + " = " + value.dump() + ": 0 or more");
    if (key != "timeout_s") what = what.empty() ? key : "?";
  }
  if (what == "seconds" && arguments.contains("timeout_s"))
    throw ScriptError("run.wait{ seconds = … } ends by itself; timeout_s is for step and event");
  if (what.empty() || what == "?")
    throw ScriptError("run.wait needs one of step, event and seconds: run.wait{ step = 30000 }");
  return what;
}

/// run.wait{ step = 30000 }, { event = "eval" }, { seconds = 60 }: until the run has come that far.
int run_wait(lua_State* state) {
  Session& session = session_of(state);
  luaL_checktype(state, 1, LUA_TTABLE);
  const Json arguments = json_at(state, 1);
  const std::string what = waited_for(arguments);
  session.begin_wait("run.wait");
  const Waiting waiting(session.activity().clock);
  const Json reached = session.ask("wait_" + what, arguments);
  if (reached.value("timed_out", false))
    throw ScriptError((what == "step" ? "step " + arguments["step"].dump() + " not reached"
                                      : "no event '" + arguments.value("event", "") + "'") +
                          " within " + arguments["timeout_s"].dump() + " s; the run is at step " +
                          reached["step"].dump(),
                      ErrorKind::timed_out);
  push_json(state, what == "event" ? reached.value("event", Json()) : reached.value("step", Json()));
  return 1;
}

template <const char* key>
int run_fact(lua_State* state) {
  push_json(state, session_of(state).greeting().run.value(key, Json()));
  return 1;
}

int run_resumed(lua_State* state) {
  lua_pushboolean(state, session_of(state).greeting().resumed ? 1 : 0);
  return 1;
}

template <const char* key>
int run_status(lua_State* state) {
  push_json(state, session_of(state).look("status").value(key, Json()));
  return 1;
}

/// run.left(): until train.steps, at the pace of now.
int run_left(lua_State* state) {
  Session& session = session_of(state);
  const Json status = session.look("status");
  const std::int64_t last = std::get<std::int64_t>(session.settings().value("train.steps"));
  const std::int64_t steps = std::max<std::int64_t>(0, last - status.value("step", std::int64_t{0}));
  Json left = {{"steps", steps}};
  std::string text = std::to_string(steps) + " steps";
  if (const auto seconds = number_from_json(status.value("eta_s", Json())); seconds && *seconds >= 0) {
    left["seconds"] = *seconds;
    text += ", " + duration(*seconds);
  }
  push_listing(state, left, text);
  return 1;
}

constexpr char kName[] = "name";
constexpr char kId[] = "id";
constexpr char kStep[] = "step";
constexpr char kState[] = "state";

constexpr Registration kRunFunctions[] = {
    {.doc =
         {.name = "run",
          .role = Role::view,
          .help =
              "run.wait{ step = 30000 } waits until then, also event = \"eval\", seconds = 60; "
              "run.stop_when(function(m) … end); run.left() run.name run.id run.step run.state run.resumed",
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
             .example = "run.stop_when(function(m) return m[\"eval/loss\"] < 1.2 end)",
             .help = "a rule that ends the run"},
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
     .handler = bound<run_fact<kName>>},
    {.doc = {.name = "run.id", .role = Role::view, .help = "id of this start"},
     .form = Form::field,
     .handler = bound<run_fact<kId>>},
    {.doc = {.name = "run.step", .role = Role::view, .help = "the step that the run is at"},
     .form = Form::field,
     .handler = bound<run_status<kStep>>},
    {.doc = {.name = "run.state",
             .role = Role::view,
             .help = "starting running paused evaluating saving ending ended"},
     .form = Form::field,
     .handler = bound<run_status<kState>>},
};

}  // namespace

std::span<const Registration> run_functions() {
  return kRunFunctions;
}

}  // namespace footplate::lua
