#include <algorithm>
#include <new>

#include "console/lua/api/api.h"
#include "console/lua/core/bind.h"
#include "console/lua/core/convert.h"
#include "console/lua/core/listing.h"
#include "console/lua/core/table_options.h"
#include "console/lua/session/session.h"
#include "protocol/schema.h"

// Rules as scripts see them: every, after, on, at(step, function), run.stop_when; rules().

namespace footplate::lua {
namespace {

constexpr const char* kRule = "footplate.rule";
constexpr double kBudget_ms = 2000;
constexpr double kSyncBudget_ms = 50;
constexpr double kLongestBudget_ms = 600'000;

std::shared_ptr<RegisteredRule>& rule_at(lua_State* state, int index) {
  return *static_cast<std::shared_ptr<RegisteredRule>*>(luaL_checkudata(state, index, kRule));
}

void push_rule(lua_State* state, std::shared_ptr<RegisteredRule> rule) {
  using Pointer = std::shared_ptr<RegisteredRule>;
  new (lua_newuserdatauv(state, sizeof(Pointer), 0)) Pointer(std::move(rule));
  luaL_setmetatable(state, kRule);
}

std::optional<double> positive(const TableOptions& options, const char* name, double most) {
  return options.number(name, {.least = 0, .most = most, .without_least = true},
                        "has to be a number above 0, at most " + shortest(most));
}

std::int64_t whole_steps(double number, const std::string& name) {
  if (number != static_cast<double>(static_cast<std::int64_t>(number)))
    throw ScriptError(name + " expects a whole number of steps");
  return static_cast<std::int64_t>(number);
}

constexpr double kMostSteps = 1e15;

/// The argument of `function` at index 1.
std::int64_t steps_argument(lua_State* state, const char* function) {
  const Json named = {{function, json_at(state, 1)}};
  const auto number = positive(TableOptions(named), function, kMostSteps);
  return whole_steps(number.value_or(0), function);
}

/// Names of a table that aren't among a rule's options, nor among `others`.
void refuse_unknown(const Json& table, std::initializer_list<std::string_view> others) {
  const std::vector<std::string> known = {"budget_ms", "on_error", "sync"};
  for (const auto& [name, value] : table.items()) {
    if (std::ranges::find(known, name) != known.end() || std::ranges::find(others, name) != others.end())
      continue;
    const std::string near = nearest(name, known);
    throw ScriptError(
        "a rule has no option '" + name + "'" +
        (near.empty() ? "; there are budget_ms, on_error and sync" : "; did you mean " + near + "?"));
  }
}

/// What every rule can be told.
void read_options(const Json& table, RuleSpec& spec) {
  const TableOptions options(table);
  if (const auto budget = positive(options, "budget_ms", kLongestBudget_ms)) spec.budget_ms = *budget;
  if (const auto sync = options.flag("sync")) spec.sync = *sync;
  constexpr const char* kOnError = "is \"warn\", \"pause\" or \"stop\"";
  if (const auto word = options.text("on_error", kOnError)) {
    spec.on_error = from_word<OnError>(*word);
    if (!spec.on_error) options.refuse("on_error", kOnError);
  }
}

/// The lines of the running chunk that the function at `index` is written in: what the journal shows.
std::string source_of(lua_State* state, int index, RuleSpec& spec) {
  lua_Debug function{};
  lua_pushvalue(state, index);
  lua_getinfo(state, ">S", &function);
  spec.line = function.linedefined;
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

Json known_options(lua_State* state, int index) {
  Json table = json_at(state, index);
  refuse_unknown(table, {});
  return table;
}

/// Where the function is among the arguments from `first` on, with an options table before or after it.
int function_and_options(lua_State* state, int first, RuleSpec& spec, const char* example) {
  int function = 0;
  for (int i = first; i <= lua_gettop(state); ++i) {
    if (lua_isfunction(state, i) && function == 0)
      function = i;
    else if (lua_istable(state, i))
      read_options(known_options(state, i), spec);
    else if (!lua_isnil(state, i))
      function = lua_gettop(state) + 1;  // neither: say how it is used
  }
  if (function == 0 || function > lua_gettop(state))
    throw ScriptError(std::string("a rule needs a function, as in ") + example);
  return function;
}

int add(lua_State* state, RuleSpec spec, int function, const std::string& text) {
  const bool waited_after =
      spec.event == RuleEvent::log || spec.event == RuleEvent::eval || spec.event == RuleEvent::ckpt;
  if (spec.sync && !waited_after)
    throw ScriptError(
        "sync = true is for on(\"log\"), on(\"eval\") and on(\"ckpt\"): training waits after them");
  if (spec.budget_ms == 0) spec.budget_ms = spec.sync ? kSyncBudget_ms : kBudget_ms;
  spec.text = text;
  spec.source = source_of(state, function, spec);
  push_rule(state, session_of(state).rules().add(state, std::move(spec), function));
  return 1;
}

/// every(n, function)
int every(lua_State* state) {
  constexpr const char* kExample = "every(1000, function() ckpt.save() end)";
  if (lua_type(state, 1) != LUA_TNUMBER)
    throw ScriptError(std::string("every takes steps first, as in ") + kExample);
  const std::int64_t steps = steps_argument(state, "every");
  RuleSpec spec;
  spec.kind = RuleKind::every;
  spec.steps = steps;
  const int function = function_and_options(state, 2, spec, kExample);
  return add(state, std::move(spec), function, "every(" + std::to_string(steps) + ", …)");
}

/// What after{} is told; the text of when it is due, which is nothing where there is no such field.
std::string read_delay(const Json& table, RuleSpec& spec) {
  constexpr double kLongest = 1e9;
  refuse_unknown(table, {"minutes", "seconds", "steps"});
  read_options(table, spec);
  const TableOptions options(table);
  std::string when;
  for (const auto& [unit, its_seconds] : {std::pair("minutes", 60), std::pair("seconds", 1)})
    if (const auto number = positive(options, unit, kLongest)) {
      spec.seconds = *number * its_seconds;
      when = std::string(unit) + " = " + shortest(*number);
    }
  if (const auto number = positive(options, "steps", kMostSteps)) {
    spec.steps = whole_steps(*number, "steps");
    when = "steps = " + std::to_string(*spec.steps);
  }
  return when;
}

/// after{ minutes = 30, fn = function() … end }; the function may also stand alone, without `fn =`.
int after(lua_State* state) {
  constexpr const char* kExample = "after{ minutes = 30, fn = function() ckpt.save() end }";
  if (!lua_istable(state, 1)) throw ScriptError(std::string("after takes a table, as in ") + kExample);
  Json table = Json::object();
  int function = 0;
  for (lua_pushnil(state); lua_next(state, 1) != 0; lua_pop(state, 1)) {
    if (lua_isfunction(state, -1)) {
      if (function != 0) throw ScriptError(std::string("after takes one function, as in ") + kExample);
      lua_pushvalue(state, -1);
      lua_insert(state, 1 + 1);  // below what lua_next works on
      function = 2;
      continue;
    }
    table[lua_type(state, -2) == LUA_TSTRING ? lua_tostring(state, -2) : "?"] = json_at(state, -1);
  }
  RuleSpec spec;
  spec.kind = RuleKind::after;
  const std::string when = read_delay(table, spec);
  if (spec.seconds.has_value() == spec.steps.has_value() || function == 0)
    throw ScriptError(std::string("after takes one of minutes, seconds and steps, and a function: ") +
                      kExample);
  return add(state, std::move(spec), function, "after{ " + when + ", … }");
}

/// on("eval", [{ budget_ms = … },] function)
int on(lua_State* state) {
  const std::string event = string_argument(state, 1);
  RuleSpec spec;
  spec.kind = RuleKind::on;
  spec.event = from_word<RuleEvent>(event);
  if (!spec.event) {
    std::vector<std::string> known;
    for (const auto& [value, word] : EnumWords<RuleEvent>::kAll) known.emplace_back(word);
    const std::string near = nearest(event, known);
    throw ScriptError("there is no event '" + event + "'" +
                      (near.empty() ? "" : "; did you mean " + near + "?") + " (" + all_words<RuleEvent>() +
                      ")");
  }
  const int function = function_and_options(state, 2, spec, "on(\"eval\", function(e) print(e.loss) end)");
  return add(state, std::move(spec), function, "on(\"" + event + "\", …)");
}

std::vector<RuleStatus> ask_rules(lua_State* state) {
  return session_of(state).look(request::Rules{});
}

std::optional<RuleStatus> find_rule(lua_State* state, std::int64_t number) {
  for (RuleStatus& rule : ask_rules(state))
    if (rule.rule == number) return std::move(rule);
  return std::nullopt;
}

/// One that the console has told of, for a handle.
std::shared_ptr<RegisteredRule> known_rule(const RuleStatus& status) {
  auto rule = std::make_shared<RegisteredRule>();
  rule->number = status.rule;
  rule->spec.text = status.text;
  return rule;
}

int rule_off(lua_State* state) {
  const auto& rule = rule_at(state, 1);
  if (session_of(state).activity().mode == Activity::Mode::registering) return 0;  // the chunk did it
  if (rule->number == 0)
    rule->dropped = true;
  else
    session_of(state).ask(request::SwitchRuleOff{rule->number});
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
  const auto now = rule->number == 0 ? std::nullopt : find_rule(state, rule->number);
  if (now)
    push_field(state, to_json(*now), key);
  else
    push_field(state, {{"state", rule->dropped ? "off" : "staged"}, {"text", rule->spec.text}}, key);
  return 1;
}

std::string describe_rule(const RuleStatus& rule) {
  std::string text = std::to_string(rule.rule) + "  " + rule.text + "  " +
                     std::string(to_string(rule.state)) + " · ran " + std::to_string(rule.runs) + " times";
  for (const std::string* part : {&rule.user, &rule.job, &rule.why})
    if (!part->empty()) text += " · " + *part;
  return text;
}

int rule_text(lua_State* state) {
  const auto& rule = rule_at(state, 1);
  const std::string text = "rule " + std::to_string(rule->number) + " " + rule->spec.text;
  lua_pushlstring(state, text.data(), text.size());
  return 1;
}

int rule_json(lua_State* state) {
  const auto& rule = rule_at(state, 1);
  push_json(state, {{"rule", rule->number}, {"text", rule->spec.text}});
  return 1;
}

int rule_collect(lua_State* state) {
  using Pointer = std::shared_ptr<RegisteredRule>;
  rule_at(state, 1).~Pointer();
  return 0;
}

/// rules(): all of them.
int rules_call(lua_State* state) {
  const auto rules = ask_rules(state);
  std::string text;
  for (const RuleStatus& rule : rules) text += (text.empty() ? "" : "\n") + describe_rule(rule);
  push_listing(state, list_of(rules), text.empty() ? "no rules" : text);
  return 1;
}

/// rules[3]
int rules_index(lua_State* state) {
  const lua_Integer number = number_in_brackets(state, "rules[3]");
  const auto found = find_rule(state, number);
  if (!found) throw ScriptError("there is no rule " + std::to_string(number) + "; rules() lists them");
  push_rule(state, known_rule(*found));
  return 1;
}

/// for number, rule in pairs(rules)
int rules_pairs(lua_State* state) {
  return push_pairs(state, ask_rules(state), [state](const RuleStatus& rule) {
    lua_pushinteger(state, rule.rule);
    push_rule(state, known_rule(rule));
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
  constexpr luaL_Reg kMethods[] = {{"__index", bound<rules_index>},
                                   {"__call", bound<rules_call>},
                                   {"__pairs", bound<rules_pairs>},
                                   {"__ipairs", bound<rules_pairs>},
                                   {"__len", bound<rules_length>},
                                   {"__json", bound<rules_call>},
                                   {"__tostring", bound<text_of_contents<rules_call>>},
                                   {nullptr, nullptr}};
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
             .help =
                 "start log eval ckpt warn order stop; options budget_ms, on_error, sync. log: once in "
                 "log.every "
                 "steps, with the newest of metrics that come less often (train/grad_norm: log.detail_every)",
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
  RuleSpec spec;
  spec.kind = RuleKind::at;
  spec.step = steps_argument(state, "at");
  const std::string step = std::to_string(*spec.step);
  const int function = function_and_options(state, 2, spec, "at(20000, function() optim.lr_scale = 0.5 end)");
  return add(state, std::move(spec), function, "at(" + step + ", …)");
}

int register_stop_when(lua_State* state) {
  RuleSpec spec;
  spec.kind = RuleKind::stop_when;
  const int function =
      function_and_options(state, 1, spec, "run.stop_when(function(m) return m[\"train/loss\"] < 1.2 end)");
  return add(state, std::move(spec), function, "run.stop_when(…)");
}

std::span<const Registration> rule_functions() {
  return kRuleFunctions;
}

}  // namespace footplate::lua
