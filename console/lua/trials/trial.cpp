#include "console/lua/trials/trial.h"

#include <cmath>

#include "console/lua/core/bind.h"
#include "console/lua/core/convert.h"
#include "console/lua/core/listing.h"
#include "console/lua/core/metric_names.h"
#include "console/lua/session/session.h"

namespace footplate::lua {
namespace {

Changes now(Session& session, const Changes& changes) {
  Changes values;
  for (const auto& [name, value] : changes)
    values.emplace_back(name, to_json(session.settings().value(name)));
  return values;
}

/// Of settings that are still as in `was`. Nobody is asked: that is done before a trial begins.
void stage(Session& session, const Changes& changes, const Changes& was) {
  for (std::size_t i = 0; i < changes.size(); ++i) {
    auto staged = session.stage().assign(changes[i].first, changes[i].second);
    if (staged) staged = session.stage().expect(was[i].first, was[i].second);
    if (!staged) throw ScriptError(staged.error());
    session.stage().force(changes[i].first);
  }
}

/// Ends a trial by an error: what was before comes back first, also where the error is Ctrl-C, unless
/// somebody else has changed it meanwhile.
[[noreturn]] void give_up(Session& session, const Changes& was, const Changes& tried,
                          const ScriptError& why) {
  if (now(session, was) == was) throw why;  // refused
  std::string end = "; what was before is back";
  try {
    stage(session, was, tried);
    session.orders().commit_at_last();
  } catch (const std::exception& error) {
    end = "; what was before could not be put back (" + std::string(error.what()) + ")";
  }
  throw ScriptError(why.what() + end, why.kind);
}

bool keeps(lua_State* state, const TrialPlan& plan, const Measurement& measurement) {
  if (measurement.was_abandoned()) return false;
  if (plan.has_keep_if) return says_yes(state, kKeepIf, {measurement.before(), measurement.after()});
  return measurement.is_better();
}

}  // namespace

std::string changes_text(const Changes& changes) {
  std::string text;
  for (const auto& [name, value] : changes)
    text += (text.empty() ? "" : ", ") + name + " = " +
            (value.is_string()         ? value.get<std::string>()
             : value.is_number_float() ? shortest(value.get<double>())
                                       : value.dump());
  return text;
}

std::string number_text(double value) {
  constexpr double kDigits = 100;  // two decimals
  if (value == 0 || !std::isfinite(value)) return shortest(value);
  const double scale = std::max(kDigits, std::pow(10, 2 - std::floor(std::log10(std::abs(value)))));
  return shortest(std::round(value * scale) / scale);
}

Json run_call(Session& session, const std::string& action, const Json& arguments) {
  const auto staged = session.stage().call(action, arguments);
  if (!staged) throw ScriptError(staged.error());
  return session.wait_call(*staged->first, staged->second, std::nullopt);
}

void check_changes(Session& session, const Changes& changes) {
  const auto staged = session.stage().snapshot();
  for (const auto& [name, value] : changes)
    if (auto checked = session.stage().assign(name, value); !checked) {
      session.stage().restore(staged);
      throw ScriptError(checked.error());
    }
  session.stage().restore(staged);
}

Tried run_trial(lua_State* state, const TrialPlan& plan, Measurement& measurement) {
  Session& session = session_of(state);
  const Changes was = now(session, plan.changes);
  Tried tried;
  try {
    stage(session, plan.changes, was);
    session.orders().commit();
    measurement.measure_after();
    tried.kept = keeps(state, plan, measurement);
    if (!tried.kept) {
      stage(session, was, plan.changes);
      session.orders().commit();
    }
  } catch (const ScriptError& why) {
    give_up(session, was, plan.changes, why);
  }
  tried.text = measurement.text(plan.changes, tried.kept);
  note(session, tried.text);
  return tried;
}

void push_tried(lua_State* state, const Measurement& measurement, const Tried& tried, Json fields) {
  fields.update({{"before", measurement.before()},
                 {"after", measurement.after()},
                 {"kept", tried.kept},
                 {"text", tried.text}});
  push_listing(state, fields, tried.text);
}

Json trial_arguments(lua_State* state, const std::vector<std::string>& known, const char* of_what,
                     const std::string& function) {
  luaL_checktype(state, 1, LUA_TTABLE);
  const bool has_keep_if = has_function(state, kKeepIf, of_what);
  Json arguments = json_at(state, 1);
  if (!arguments.is_object()) arguments = Json::object();
  check_arguments(arguments, known, function);
  if (has_keep_if && TableOptions(arguments).has("better_by"))
    throw ScriptError(function + " takes keep_if or better_by, not both");
  return arguments;
}

void note(Session& session, const std::string& text) {
  run_call(session, "run.note", {{"text", text}});
}

std::int64_t trial_steps(const TableOptions& options, const char* key, std::int64_t otherwise) {
  const auto steps =
      options.number(key, {.least = 1, .most = 1e9, .whole = true}, "is a number of steps, 1 or more");
  return steps ? static_cast<std::int64_t>(*steps) : otherwise;
}

double better_by_of(const TableOptions& options, double otherwise) {
  return options
      .number("better_by", {.least = 0, .most = 1, .without_most = true},
              "is a part of what is measured, 0 to 1: 0.02 is 2 %")
      .value_or(otherwise);
}

bool has_function(lua_State* state, const char* name, const char* of_what) {
  const int type = lua_getfield(state, 1, name);
  lua_pop(state, 1);
  if (type != LUA_TNIL && type != LUA_TFUNCTION)
    throw ScriptError(std::string(name) + " is a function of " + of_what);
  return type == LUA_TFUNCTION;
}

bool says_yes(lua_State* state, const char* name, const std::vector<Json>& arguments) {
  luaL_checkstack(state, static_cast<int>(arguments.size()) + 2, nullptr);
  lua_getfield(state, 1, name);
  for (const Json& argument : arguments) push_metrics_table(state, argument);
  if (lua_pcall(state, static_cast<int>(arguments.size()), 1, 0) != LUA_OK) {
    const char* message = lua_tostring(state, -1);
    throw ScriptError(std::string(name) + " failed: " + (message != nullptr ? message : "?"));
  }
  const bool yes = lua_toboolean(state, -1) != 0;
  lua_pop(state, 1);
  return yes;
}

}  // namespace footplate::lua
