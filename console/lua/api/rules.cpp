#include <algorithm>
#include <array>
#include <new>

#include "console/lua/api/api.h"
#include "console/lua/core/bind.h"
#include "console/lua/core/convert.h"
#include "console/lua/core/listing.h"
#include "console/lua/session/session.h"
#include "protocol/schema.h"

// Rules as scripts see them: every, after, on, at(step, function), run.stop_when; rules().

namespace footplate::lua {
namespace {

constexpr const char* kRule = "footplate.rule";
constexpr double kBudget_ms = 2000;
constexpr double kSyncBudget_ms = 50;
constexpr double kLongestBudget_ms = 600'000;

constexpr std::array kEvents = {"start", "log", "eval", "ckpt", "warn", "order", "stop"};

std::shared_ptr<RegisteredRule>& rule_at(lua_State* state, int index) {
  return *static_cast<std::shared_ptr<RegisteredRule>*>(luaL_checkudata(state, index, kRule));
}

void push_rule(lua_State* state, std::shared_ptr<RegisteredRule> rule) {
  using Pointer = std::shared_ptr<RegisteredRule>;
  new (lua_newuserdatauv(state, sizeof(Pointer), 0)) Pointer(std::move(rule));
  luaL_setmetatable(state, kRule);
}

double positive(const Json& value, const std::string& name, double most) {
  if (!value.is_number() || value.get<double>() <= 0 || value.get<double>() > most)
    throw ScriptError(name + " has to be a number above 0, at most " + shortest(most));
  return value.get<double>();
}

std::int64_t steps_of(const Json& value, const std::string& name) {
  const double number = positive(value, name, 1e15);
  if (number != static_cast<double>(static_cast<std::int64_t>(number)))
    throw ScriptError(name + " expects a whole number of steps");
  return static_cast<std::int64_t>(number);
}

void read_option(Json& spec, const std::string& name, const Json& value) {
  constexpr std::array kChoices = {"warn", "pause", "stop"};
  if (name == "budget_ms") {
    spec[name] = positive(value, name, kLongestBudget_ms);
  } else if (name == "sync") {
    if (!value.is_boolean()) throw ScriptError("sync is true or false");
    spec[name] = value;
  } else if (name == "on_error") {
    const bool known = value.is_string() && std::find(kChoices.begin(), kChoices.end(),
                                                      value.get<std::string>()) != kChoices.end();
    if (!known) throw ScriptError("on_error is \"warn\", \"pause\" or \"stop\"");
    spec[name] = value;
  } else {
    const std::string near = nearest(name, {"budget_ms", "on_error", "sync"});
    throw ScriptError(
        "a rule has no option '" + name + "'" +
        (near.empty() ? "; there are budget_ms, on_error and sync" : "; did you mean " + near + "?"));
  }
}

void read_options(lua_State* state, int index, Json& spec) {
  const Json options = json_at(state, index);
  for (const auto& [name, value] : options.items()) read_option(spec, name, value);
}

/// The lines of the running chunk that the function at `index` is written in: what the journal shows.
std::string source_of(lua_State* state, int index, Json& spec) {
  lua_Debug function{};
  lua_pushvalue(state, index);
  lua_getinfo(state, ">S", &function);
  spec["line"] = function.linedefined;
  const std::string& chunk = session_of(state).activity().source;
  std::string text;
  int line = 1;
  for (std::size_t start = 0; start < chunk.size(); ++line) {
    const std::size_t end = std::min(chunk.find('\n', start), chunk.size());
    if (line >= function.linedefined && line <= function.lastlinedefined)
      text += (text.empty() ? "" : "\n") + chunk.substr(start, end - start);
    start = end + 1;
  }
  return text;
}

/// Where the function is among the arguments from `first` on, with an options table before or after it.
int function_and_options(lua_State* state, int first, Json& spec, const char* example) {
  int function = 0;
  for (int i = first; i <= lua_gettop(state); ++i) {
    if (lua_isfunction(state, i) && function == 0)
      function = i;
    else if (lua_istable(state, i))
      read_options(state, i, spec);
    else if (!lua_isnil(state, i))
      function = lua_gettop(state) + 1;  // neither: say how it is used
  }
  if (function == 0 || function > lua_gettop(state))
    throw ScriptError(std::string("a rule needs a function, as in ") + example);
  return function;
}

int add(lua_State* state, Json spec, int function, const std::string& text) {
  const bool sync = spec.value("sync", false);
  const std::string event = spec.value("event", "");
  if (sync && event != "log" && event != "eval" && event != "ckpt")
    throw ScriptError(
        "sync = true is for on(\"log\"), on(\"eval\") and on(\"ckpt\"): training waits after them");
  if (!spec.contains("budget_ms")) spec["budget_ms"] = sync ? kSyncBudget_ms : kBudget_ms;
  spec["text"] = text;
  spec["source"] = source_of(state, function, spec);
  push_rule(state, session_of(state).rules().add(state, std::move(spec), function));
  return 1;
}

/// every(n, function)
int every(lua_State* state) {
  constexpr const char* kExample = "every(1000, function() ckpt.save() end)";
  if (lua_type(state, 1) != LUA_TNUMBER)
    throw ScriptError(std::string("every takes steps first, as in ") + kExample);
  const std::int64_t steps = steps_of(json_at(state, 1), "every");
  Json spec = {{"kind", "every"}, {"steps", steps}};
  const int function = function_and_options(state, 2, spec, kExample);
  return add(state, std::move(spec), function, "every(" + std::to_string(steps) + ", …)");
}

/// after{ minutes = 30, fn = function() … end }; the function may also stand alone, without `fn =`.
int after(lua_State* state) {
  constexpr const char* kExample = "after{ minutes = 30, fn = function() ckpt.save() end }";
  if (!lua_istable(state, 1)) throw ScriptError(std::string("after takes a table, as in ") + kExample);
  Json spec = {{"kind", "after"}};
  std::string when;
  int function = 0;
  for (lua_pushnil(state); lua_next(state, 1) != 0; lua_pop(state, 1)) {
    if (lua_isfunction(state, -1)) {
      if (function != 0) throw ScriptError(std::string("after takes one function, as in ") + kExample);
      lua_pushvalue(state, -1);
      lua_insert(state, 1 + 1);  // below what lua_next works on
      function = 2;
      continue;
    }
    const std::string name = lua_type(state, -2) == LUA_TSTRING ? lua_tostring(state, -2) : "?";
    const Json value = json_at(state, -1);
    if (name == "minutes" || name == "seconds") {
      spec["seconds"] = positive(value, name, 1e9) * (name == "minutes" ? 60 : 1);
      when = name + " = " + shortest(value.get<double>());
    } else if (name == "steps") {
      spec["steps"] = steps_of(value, name);
      when = name + " = " + std::to_string(steps_of(value, name));
    } else {
      read_option(spec, name, value);
    }
  }
  if (spec.contains("seconds") == spec.contains("steps") || function == 0)
    throw ScriptError(std::string("after takes one of minutes, seconds and steps, and a function: ") +
                      kExample);
  return add(state, std::move(spec), function, "after{ " + when + ", … }");
}

/// on("eval", [{ budget_ms = … },] function)
int on(lua_State* state) {
  const std::string event = string_argument(state, 1);
  if (std::find(kEvents.begin(), kEvents.end(), event) == kEvents.end()) {
    const std::string near = nearest(event, {kEvents.begin(), kEvents.end()});
    throw ScriptError("there is no event '" + event + "'" +
                      (near.empty() ? "" : "; did you mean " + near + "?") +
                      " (start, log, eval, ckpt, warn, order, stop)");
  }
  Json spec = {{"kind", "on"}, {"event", event}};
  const int function = function_and_options(state, 2, spec, "on(\"eval\", function(e) print(e.loss) end)");
  return add(state, std::move(spec), function, "on(\"" + event + "\", …)");
}

Json ask_rules(lua_State* state) {
  return session_of(state).look("rules");
}

Json find_rule(lua_State* state, std::int64_t number) {
  for (const auto& rule : ask_rules(state))
    if (rule.value("rule", std::int64_t{0}) == number) return rule;
  return nullptr;
}

int rule_off(lua_State* state) {
  const auto& rule = rule_at(state, 1);
  if (session_of(state).activity().mode == Activity::Mode::registering) return 0;  // the chunk did it
  if (rule->number == 0)
    rule->dropped = true;
  else
    session_of(state).ask("rule_off", {{"rule", rule->number}});
  return 0;
}

int rule_index(lua_State* state) {
  const auto& rule = rule_at(state, 1);
  const std::string key = string_argument(state, 2);
  if (key == "off") {
    lua_pushcfunction(state, bound<rule_off>);
    return 1;
  }
  if (key == "number") {
    lua_pushinteger(state, rule->number);
    return 1;
  }
  if (key != "state" && key != "runs" && key != "text" && key != "why")
    throw ScriptError("a rule has :off(), .number, .state, .text, .runs and .why, not '" + key + "'");
  const Json now = rule->number == 0 ? Json() : find_rule(state, rule->number);
  if (now.is_object())
    push_json(state, now.value(key, Json()));
  else
    push_json(state, key == "state" ? Json(rule->dropped ? "off" : "staged") : rule->spec.value(key, Json()));
  return 1;
}

std::string describe_rule(const Json& rule) {
  std::string text = std::to_string(rule.value("rule", std::int64_t{0})) + "  " + rule.value("text", "") +
                     "  " + rule.value("state", "") + " · ran " +
                     std::to_string(rule.value("runs", std::int64_t{0})) + " times";
  for (const char* field : {"user", "job", "why"})
    if (const std::string value = rule.value(field, ""); !value.empty()) text += " · " + value;
  return text;
}

int rule_text(lua_State* state) {
  const auto& rule = rule_at(state, 1);
  const std::string text = "rule " + std::to_string(rule->number) + " " + rule->spec.value("text", "");
  lua_pushlstring(state, text.data(), text.size());
  return 1;
}

int rule_json(lua_State* state) {
  const auto& rule = rule_at(state, 1);
  push_json(state, {{"rule", rule->number}, {"text", rule->spec.value("text", "")}});
  return 1;
}

int rule_collect(lua_State* state) {
  using Pointer = std::shared_ptr<RegisteredRule>;
  rule_at(state, 1).~Pointer();
  return 0;
}

/// rules(): all of them.
int rules_call(lua_State* state) {
  const Json rules = ask_rules(state);
  std::string text;
  for (const auto& rule : rules) text += (text.empty() ? "" : "\n") + describe_rule(rule);
  push_listing(state, rules, text.empty() ? "no rules" : text);
  return 1;
}

/// rules[3]
int rules_index(lua_State* state) {
  const lua_Integer number = number_in_brackets(state, "rules[3]");
  const Json found = find_rule(state, number);
  if (found.is_null())
    throw ScriptError("there is no rule " + std::to_string(number) + "; rules() lists them");
  auto rule = std::make_shared<RegisteredRule>();
  rule->number = number;
  rule->spec = found;
  push_rule(state, std::move(rule));
  return 1;
}

/// for number, rule in pairs(rules)
int rules_pairs(lua_State* state) {
  return push_pairs(state, ask_rules(state), [state](const Json& spec) {
    auto rule = std::make_shared<RegisteredRule>();
    rule->number = spec.value("rule", std::int64_t{0});
    rule->spec = spec;
    lua_pushinteger(state, rule->number);
    push_rule(state, std::move(rule));
  });
}

int rules_length(lua_State* state) {
  lua_pushinteger(state, static_cast<lua_Integer>(ask_rules(state).size()));
  return 1;
}

int push_rules(lua_State* state) {
  constexpr luaL_Reg kRuleMethods[] = {{"__index", bound<rule_index>},
                                       {"__tostring", bound<rule_text>},
                                       {"__json", bound<rule_json>},
                                       {"__gc", rule_collect},
                                       {nullptr, nullptr}};
  add_locked_type(state, kRule, kRuleMethods);
  constexpr luaL_Reg kMethods[] = {{"__index", bound<rules_index>}, {"__call", bound<rules_call>},
                                   {"__pairs", bound<rules_pairs>}, {"__ipairs", bound<rules_pairs>},
                                   {"__len", bound<rules_length>},  {nullptr, nullptr}};
  push_locked_object(state, kMethods);
  return 1;
}

constexpr Registration kRuleFunctions[] = {
    {.doc = {.name = "every",
             .role = Role::operate,
             .example = "every(1000, function() ckpt.save() end)",
             .help = "a rule; it belongs to the run (rules() lists, :off() ends one)",
             .in_overview = true},
     .handler = bound<every>},
    {.doc = {.name = "after",
             .role = Role::operate,
             .example = "after{ minutes = 30, fn = function() … end }",
             .help = "once; also seconds, steps",
             .in_overview = true},
     .handler = bound<after>},
    {.doc = {.name = "on",
             .role = Role::operate,
             .example = "on(\"eval\", function(e) … end)",
             .help = "start log eval ckpt warn order stop; options budget_ms, on_error, sync",
             .in_overview = true},
     .handler = bound<on>},
    {.doc = {.name = "rules",
             .role = Role::view,
             .example = "rules()",
             .help = "the run's rules; rules[3]:off() ends one",
             .in_overview = true},
     .form = Form::object,
     .handler = bound<push_rules>},
};

}  // namespace

int register_at(lua_State* state) {
  Json spec = {{"kind", "at"}, {"step", steps_of(json_at(state, 1), "at")}};
  const std::string step = spec["step"].dump();
  const int function = function_and_options(state, 2, spec, "at(20000, function() optim.lr_scale = 0.5 end)");
  return add(state, std::move(spec), function, "at(" + step + ", …)");
}

int register_stop_when(lua_State* state) {
  Json spec = {{"kind", "stop_when"}};
  const int function =
      function_and_options(state, 1, spec, "run.stop_when(function(m) return m[\"eval/loss\"] < 1.2 end)");
  return add(state, std::move(spec), function, "run.stop_when(…)");
}

std::span<const Registration> rule_functions() {
  return kRuleFunctions;
}

}  // namespace footplate::lua
