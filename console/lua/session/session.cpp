#include "console/lua/session/session.h"

#include <sched.h>

#include <algorithm>
#include <cstdlib>

#include "console/lua/config/expression.h"
#include "console/lua/core/bind.h"
#include "console/lua/core/convert.h"
#include "console/lua/core/metric_names.h"
#include "console/lua/core/sandbox.h"
#include "console/lua/core/syntax_advice.h"
#include "protocol/schema_names.h"

namespace footplate::lua {
namespace {

constexpr double kNoLimit_s = 1e9;  ///< thirty years

constexpr std::size_t kMaxMessage = 16U * 1024;  ///< bytes of an error's text

/// What run_chunk works on.
struct Job {
  const std::string& code;
  const std::string& name;
  int environment;  ///< a reference
  Outcome& outcome;
};

int load(lua_State* state, const std::string& code, const std::string& name) {
  return luaL_loadbufferx(state, code.data(), code.size(), ("=" + name).c_str(), "t");
}

void load_expression_or_statements(lua_State* state, const Job& job) {
  if (const std::string surplus = surplus_value(job.code); !surplus.empty()) {
    lua_pushfstring(state, "%s:%s", job.name.c_str(), surplus.c_str());
    lua_error(state);
  }
  if (load(state, as_expression(job.code), job.name) == LUA_OK) return;
  lua_pop(state, 1);
  const int status = load(state, job.code, job.name);
  if (status == LUA_OK) return;
  if (status == LUA_ERRSYNTAX) {
    const std::string message = with_syntax_advice(lua_tostring(state, -1), job.code);
    lua_pushlstring(state, message.data(), message.size());
  }
  lua_error(state);
}

/// `_` is the first value of the last chunk that had one.
void keep_last_result(lua_State* state, int environment) {
  if (lua_gettop(state) == 0 || lua_isnil(state, 1)) return;
  luaL_checkstack(state, 3, "too many results");
  lua_rawgeti(state, LUA_REGISTRYINDEX, environment);
  lua_pushliteral(state, "_");
  lua_pushvalue(state, 1);
  lua_rawset(state, -3);
  lua_pop(state, 1);
}

/// All values from stack index `first` on, for people.
std::string results_text(lua_State* state, int first) {
  const int last = lua_gettop(state);
  if (last == first && lua_isnil(state, first)) return {};
  std::string text;
  for (int i = first; i <= last; ++i) text += (i > first ? "\n" : "") + render(state, i);
  return text;
}

/// And for programs: one value as it is, several as a list. Throws as json_at.
Json results_value(lua_State* state, int first) {
  const int last = lua_gettop(state);
  if (last < first) return nullptr;
  if (last == first) return json_at(state, first);
  Json list = Json::array();
  for (int i = first; i <= last; ++i) list.push_back(json_at(state, i));
  return list;
}

/// What run_handler works on.
struct Firing {
  const HandleRule& rule;
  int function;  ///< a reference
};

/// Of the rules that it has registered.
std::vector<RuleSpec> specs_of(const Activity& activity) {
  std::vector<RuleSpec> specs;
  for (const auto& rule : activity.rules) specs.push_back(rule->spec);
  return specs;
}

std::string message_on_top(lua_State* state) {
  if (lua_type(state, -1) == LUA_TSTRING) return lua_tostring(state, -1);
  return "the chunk raised " + std::string(luaL_typename(state, -1)) + ", not a message";
}

}  // namespace

Session& session_of(lua_State* state) {
  return static_cast<Session&>(owner_of(state));
}

Session::Session(Greeting greeting, ConsoleLink& link, const OpenNames& open_names)
    : greeting_(std::move(greeting)),
      console_(greeting_, link),
      orders_(greeting_, console_),
      rules_(greeting_, console_),
      allocator_(greeting_.limits.memory_bytes),
      state_(lua_newstate(CappedAllocator::allocate, &allocator_)) {
  if (state_ == nullptr) throw std::bad_alloc();
  set_owner(state_, *this);
  // Set before any coroutine is made: each inherits its hook from the state that makes it.
  lua_sethook(state_, hook, LUA_MASKCOUNT, kHookEvery);
  handlers_ = lua_newthread(state_);
  lua_setfield(state_, LUA_REGISTRYINDEX, "footplate.handlers");
  open_convert(state_);
  lua_newtable(state_);
  push_environment(state_, 1);
  open_names(state_, 1, 2);
  lua_settop(state_, 2);
  environment_ = luaL_ref(state_, LUA_REGISTRYINDEX);
  lua_setfield(state_, LUA_REGISTRYINDEX, kOwnNames);
  lua_settop(state_, 0);
}

Session::~Session() {
  lua_close(state_);
}

void Session::remember_error(const std::string& message, ErrorKind kind) {
  activity().last_error = {kind, message};
}

std::string Session::unknown_name(const std::string& name, const std::vector<std::string>& known) const {
  if (schema().knows_variable(name)) return schema().unknown_setting(name);
  if (std::string text = text_for_unquoted_choice(schema(), name); !text.empty()) return text;
  if (const std::string meant = text_for_bare_setting(schema(), name); !meant.empty())
    return "unknown name '" + name + "'; " + meant;
  const std::string near = name.size() < 3 ? "" : nearest(name, known);
  return "unknown name '" + name + "'" +
         (near.empty() ? "; help() lists what there is" : "; did you mean " + near + "?") +
         (greeting_.kind == SessionKind::rules
              ? " A rule sees what its own chunk defines; store is for what sessions share"
              : "");
}

/// NCCL_BUFFSIZE = … or lr = … at the prompt: a variable of the session that would do nothing.
std::string Session::refused_variable(const std::string& name) const {
  if (schema().knows_variable(name)) return schema().unknown_setting(name);
  const std::string meant = text_for_bare_setting(schema(), name);
  if (meant.empty()) return {};
  return name + " = … would make a variable and change no setting; " + meant +
         ". For a variable write local " + name + " = …, or take another name";
}

void Session::hook(lua_State* state, lua_Debug*) {
  Session& session = session_of(state);
  if (!session.console_.out_of_time()) {
    ::sched_yield();  // at idle priority a tick's worth of time would pass before a rank that yielded is back
    if (lua_gethookcount(state) != kHookEvery) lua_sethook(state, hook, LUA_MASKCOUNT, kHookEvery);
    return;
  }
  // From here at every instruction, so that a pcall in a loop can't swallow the end.
  lua_sethook(state, hook, LUA_MASKCOUNT, 1);
  luaL_where(state, 0);
  lua_pushstring(state, session.activity().stop.c_str());
  lua_concat(state, 2);
  lua_error(state);
}

int Session::run_chunk(lua_State* state) {
  Session& session = session_of(state);
  Job& job = *static_cast<Job*>(lua_touserdata(state, 1));
  lua_settop(state, 0);
  load_expression_or_statements(state, job);
  lua_rawgeti(state, LUA_REGISTRYINDEX, job.environment);
  lua_setupvalue(state, 1, 1);
  lua_call(state, 0, LUA_MULTRET);
  if (session.console_.out_of_time())
    throw ScriptError(session.activity().stop);  // the last thing it did was to catch its end
  session.finish_activity();
  if (session.activity().mode == Activity::Mode::registering) return 0;
  keep_last_result(state, job.environment);
  job.outcome.text = results_text(state, 1);
  try {
    job.outcome.value = results_value(state, 1);
  } catch (const ScriptError& error) {
    session.talk(std::string("the result is for reading only: ") + error.what());
  }
  return 0;
}

/// Rules first: an order that fails takes them back, the other way round it could not be taken back.
void Session::finish_activity() {
  if (activity().mode == Activity::Mode::registering) return orders_.plan();
  try {
    rules_.send();
    orders_.commit();
  } catch (...) {
    rules_.drop();
    throw;
  }
  activity().rules.clear();
}

Outcome Session::evaluate(const std::string& code, const std::string& name,
                          std::chrono::duration<double> timeout, bool asks) {
  // A job's script has no limit: it is the owner's, and runs at idle priority where it is busy.
  const bool endless = greeting_.kind == SessionKind::job;
  console_.begin(Activity::Mode::chunk,
                 endless ? std::chrono::duration<double>(kNoLimit_s) : greeting_.limits.chunk);
  activity().source = code;
  activity().name = name;
  activity().order_timeout = timeout;
  activity().asks = asks;
  return evaluate_in(environment_, code, name);
}

Outcome Session::evaluate_in(int environment, const std::string& code, const std::string& name) {
  console_.link().clear_interrupt();
  Outcome outcome;
  Job job{code, name, environment, outcome};
  activity().clock.start(activity().limit);
  lua_sethook(state_, hook, LUA_MASKCOUNT, kHookEvery);
  lua_pushcfunction(state_, bound<run_chunk>);
  lua_pushlightuserdata(state_, &job);
  const int status = lua_pcall(state_, 1, 0, 0);
  activity().clock.pause();
  if (status != LUA_OK && !activity().ended_early) outcome = failed(message_on_top(state_), name);
  activity().stage.drop();
  lua_settop(state_, 0);
  return outcome;
}

Checked Session::check(const std::string& code, const std::string& name) {
  console_.begin(Activity::Mode::registering, greeting_.limits.chunk);
  activity().source = code;
  Outcome outcome = evaluate_in(environment_, code, name);
  return {std::move(outcome), specs_of(activity()), activity().planned, activity().waits_for};
}

Registered Session::register_chunk(std::int64_t chunk, const std::string& code, const std::string& name) {
  console_.begin(Activity::Mode::registering, greeting_.limits.chunk);
  activity().source = code;
  rules_.begin_chunk(chunk);
  lua_getfield(state_, LUA_REGISTRYINDEX, kOwnNames);
  push_environment_like(state_, lua_gettop(state_));
  const int environment = luaL_ref(state_, LUA_REGISTRYINDEX);
  lua_settop(state_, 0);
  Outcome outcome = evaluate_in(environment, code, name);
  luaL_unref(state_, LUA_REGISTRYINDEX, environment);  // its functions hold it
  return {std::move(outcome), specs_of(activity())};
}

Outcome Session::failed(const std::string& message, const std::string& name) {
  activity().stage.drop();
  for (auto& rule : activity().rules) rule->dropped = rule->number == 0;
  Outcome outcome;
  outcome.error = Error{ErrorKind::script, message.substr(0, kMaxMessage)};
  if (message == "not enough memory")
    outcome.error->message +=
        ": a session has " + std::to_string(greeting_.limits.memory_bytes >> 20) + " MiB";
  const auto& known = activity().last_error;
  if (known && message.ends_with(known->message) && known->kind != ErrorKind::usage)
    outcome.error->kind = known->kind;
  if (message.starts_with(name + ":"))
    if (const int line = std::atoi(message.c_str() + name.size() + 1); line > 0) outcome.error_line = line;
  return outcome;
}

void Session::settings_changed(const SettingsUpdate& update) {
  for (const auto& [name, setting] : update.settings)
    if (auto value = greeting_.schema.check(name, setting.value))
      greeting_.settings.set(name, *std::move(value), setting.source);
}

void Session::begin_wait(const char* what) {
  if (activity().mode == Activity::Mode::registering) {
    activity().ended_early = true;
    activity().waits_for = what;
    orders_.plan();
    activity().stop = std::string("ends at its first wait, ") + what;
    lua_sethook(state_, hook, LUA_MASKCOUNT, 1);  // so that a pcall can't go on
    throw ScriptError(activity().stop);
  }
  if (activity().mode == Activity::Mode::handler && std::string_view(what) != ":wait()")
    throw ScriptError(
        std::string(what) +
        " can't be used in a rule: the others would wait too; at(), after{} and on() are for later");
  finish_activity();
  activity().has_waited = true;
}

Json Session::wait_call(StagedOrder& order, int call, std::optional<double> timeout_s) {
  if (order.dropped)
    throw ScriptError("this order was dropped with its chunk, or cancelled: there is nothing to wait for");
  begin_wait(":wait()");
  if (call >= 0) return orders_.wait_call(order, call, timeout_s);
  orders_.wait_applied(order, timeout_s);
  return order.report.applied ? to_json(*order.report.applied) : Json::object();
}

int Session::run_handler(lua_State* state) {
  Session& session = session_of(state);
  const Firing firing = *static_cast<Firing*>(lua_touserdata(state, 1));
  const HandleRule& rule = firing.rule;
  Stage& stage = session.stage();
  lua_settop(state, 0);
  if (rule.at_step) stage.begin_at(*rule.at_step);
  lua_rawgeti(state, LUA_REGISTRYINDEX, firing.function);
  rule.of_metrics ? push_metrics_table(state, rule.event) : push_json(state, rule.event);
  lua_call(state, 1, 1);
  if (session.console_.out_of_time()) throw ScriptError(session.activity().stop);
  if (stage.in_at()) stage.finish_at();
  if (rule.stop_when && lua_toboolean(state, 1) != 0) {
    const auto staged = stage.call("run.stop", {{"reason", rule.text.empty() ? "a rule" : rule.text}});
    if (!staged) throw ScriptError(staged.error());
  }
  session.orders().commit();
  return 0;
}

Handled Session::handle(const HandleRule& rule) {
  const std::chrono::duration<double, std::milli> budget(rule.budget_ms);
  auto outer = console_.begin(Activity::Mode::handler, budget);
  activity().source = rule.source;
  Handled handled;
  const auto function = rules_.function(rule.chunk, rule.index);
  if (!function) {
    handled.outcome = failed("this rule's function is not in this process", rule.name);
  } else {
    Firing firing{rule, *function};
    activity().clock.start(activity().limit);
    lua_sethook(handlers_, hook, LUA_MASKCOUNT, kHookEvery);
    lua_pushcfunction(handlers_, bound<run_handler>);
    lua_pushlightuserdata(handlers_, &firing);
    const int status = lua_pcall(handlers_, 1, 0, 0);
    activity().clock.pause();
    if (status != LUA_OK) handled.outcome = failed(message_on_top(handlers_), rule.name);
    lua_settop(handlers_, 0);
    handled.ran_ms = activity().clock.used().count() * 1e3;
  }
  activity().stage.drop();
  console_.go_on(std::move(outer));
  return handled;
}

}  // namespace footplate::lua
