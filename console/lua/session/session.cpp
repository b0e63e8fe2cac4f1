#include "console/lua/session/session.h"

#include <sched.h>

#include <algorithm>
#include <cstdlib>

#include "console/lua/config/expression.h"
#include "console/lua/core/bind.h"
#include "console/lua/core/convert.h"
#include "console/lua/core/sandbox.h"
#include "console/lua/session/confirmation.h"

namespace footplate::lua {
namespace {

constexpr double kNoLimit_s = 1e9;  ///< thirty years

constexpr std::size_t kMaxMessage = 16U * 1024;  ///< bytes of an error's text

/// Registry key of the table with footplate's own names.
constexpr const char* kOwn = "footplate.own";

/// What run_chunk works on.
struct Job {
  const std::string& code;
  const std::string& name;
  int environment;  ///< a reference
  Outcome& outcome;
};

Result<Kind> kind_from_string(const std::string& text) {
  if (text == "session") return Kind::session;
  if (text == "job") return Kind::job;
  if (text == "rules") return Kind::rules;
  if (text == "check") return Kind::check;
  return fail(ErrorKind::failed, "unknown kind of session '" + text + "'");
}

int load(lua_State* state, const std::string& code, const std::string& name) {
  return luaL_loadbufferx(state, code.data(), code.size(), ("=" + name).c_str(), "t");
}

void load_expression_or_statements(lua_State* state, const Job& job) {
  if (load(state, as_expression(job.code), job.name) == LUA_OK) return;
  lua_pop(state, 1);
  if (load(state, job.code, job.name) != LUA_OK) lua_error(state);
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

}  // namespace

Session& session_of(lua_State* state) {
  return static_cast<Session&>(owner_of(state));
}

Result<Greeting> Greeting::from_json(const Json& hello) {
  try {
    auto schema = Schema::from_json(hello.at("schema"));
    if (!schema) return tl::unexpected(schema.error());
    auto settings = Settings::from_json(hello.at("settings"), *schema);
    if (!settings) return tl::unexpected(settings.error());
    const auto role = role_from_string(hello.value("role", "admin"));
    if (!role) return tl::unexpected(role.error());
    const Json given = hello.value("limits", Json::object());
    Limits limits;
    limits.chunk = std::chrono::duration<double>(given.value("chunk_s", limits.chunk.count()));
    limits.burst = std::chrono::duration<double>(given.value("idle_cpu_s", limits.burst.count()));
    limits.memory_bytes = given.value("memory_bytes", limits.memory_bytes);
    limits.output_bytes = given.value("output_bytes", limits.output_bytes);
    const auto kind = kind_from_string(hello.value("kind", "session"));
    if (!kind) return tl::unexpected(kind.error());
    return Greeting{*std::move(schema),
                    *std::move(settings),
                    hello.value("run", Json::object()),
                    hello.value("session", ""),
                    hello.value("user", ""),
                    *role,
                    limits,
                    *kind,
                    hello.value("arguments", std::vector<std::string>{}),
                    hello.value("resumed", false)};
  } catch (const Json::exception& error) {
    return fail(ErrorKind::failed, std::string("malformed hello from the console: ") + error.what());
  }
}

Session::Session(Greeting greeting, ConsoleLink& link, const OpenNames& open_names)
    : greeting_(std::move(greeting)),
      link_(link),
      allocator_(greeting_.limits.memory_bytes),
      state_(lua_newstate(CappedAllocator::allocate, &allocator_)),
      now_(new_activity(Activity::Mode::chunk, greeting_.limits.chunk)) {
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
  lua_setfield(state_, LUA_REGISTRYINDEX, kOwn);
  lua_settop(state_, 0);
}

Session::~Session() {
  lua_close(state_);
}

void Session::remember_error(const std::string& message, ErrorKind kind) {
  now_->last_error = {kind, message};
}

std::string Session::unknown_name(const std::string& name, const std::vector<std::string>& known) const {
  if (schema().knows_variable(name)) return schema().unknown_setting(name);
  const std::string near = name.size() < 3 ? "" : nearest(name, known);
  return "unknown name '" + name + "'" +
         (near.empty() ? "; help() lists what there is" : "; did you mean " + near + "?") +
         (greeting_.kind == Kind::rules
              ? " A rule sees what its own chunk defines; store is for what sessions share"
              : "");
}

/// NCCL_BUFFSIZE = … at the prompt: a variable of the session that would do nothing.
std::string Session::refused_variable(const std::string& name) const {
  return schema().knows_variable(name) ? schema().unknown_setting(name) : "";
}

std::unique_ptr<Activity> Session::new_activity(Activity::Mode mode, std::chrono::duration<double> limit) {
  auto activity = std::make_unique<Activity>(greeting_.schema, greeting_.settings, mode);
  activity->limit = limit;
  return activity;
}

bool Session::out_of_time() {
  std::string& stop = now_->stop;
  if (stop.empty() && link_.interrupted()) stop = "interrupted";
  if (stop.empty() && now_->clock.expired())
    stop =
        now_->mode == Activity::Mode::handler
            ? "stopped: a rule may run for budget_ms = " + shortest(now_->limit.count() * 1e3)
            : "stopped: a chunk may run for " + shortest(now_->limit.count()) + " s (waiting isn't counted)";
  return !stop.empty();
}

void Session::hook(lua_State* state, lua_Debug*) {
  Session& session = session_of(state);
  if (!session.out_of_time()) {
    ::sched_yield();  // at idle priority a tick's worth of time would pass before a rank that yielded is back
    if (lua_gethookcount(state) != kHookEvery) lua_sethook(state, hook, LUA_MASKCOUNT, kHookEvery);
    return;
  }
  // From here at every instruction, so that a pcall in a loop can't swallow the end.
  lua_sethook(state, hook, LUA_MASKCOUNT, 1);
  luaL_where(state, 0);
  lua_pushstring(state, session.now_->stop.c_str());
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
  if (session.out_of_time())
    throw ScriptError(session.now_->stop);  // the last thing it did was to catch its end
  session.finish_activity();
  if (session.now_->mode == Activity::Mode::registering) return 0;
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
  if (now_->mode == Activity::Mode::registering) return plan();
  try {
    send_rules();
    commit();
  } catch (...) {
    drop_rules();
    throw;
  }
  now_->rules.clear();
}

std::string Session::message_on_top(lua_State* state) const {
  if (lua_type(state, -1) == LUA_TSTRING) return lua_tostring(state, -1);
  return "the chunk raised " + std::string(luaL_typename(state, -1)) + ", not a message";
}

Outcome Session::evaluate(const std::string& code, const std::string& name,
                          std::chrono::duration<double> timeout, bool asks) {
  // A job's script has no limit: it is the owner's, and runs at idle priority where it is busy.
  const bool endless = greeting_.kind == Kind::job;
  now_ = new_activity(Activity::Mode::chunk,
                      endless ? std::chrono::duration<double>(kNoLimit_s) : greeting_.limits.chunk);
  now_->source = code;
  now_->name = name;
  now_->order_timeout = timeout;
  now_->asks = asks;
  return evaluate_in(environment_, code, name);
}

Outcome Session::evaluate_in(int environment, const std::string& code, const std::string& name) {
  link_.clear_interrupt();
  Outcome outcome;
  Job job{code, name, environment, outcome};
  now_->clock.start(now_->limit);
  lua_sethook(state_, hook, LUA_MASKCOUNT, kHookEvery);
  lua_pushcfunction(state_, bound<run_chunk>);
  lua_pushlightuserdata(state_, &job);
  const int status = lua_pcall(state_, 1, 0, 0);
  now_->clock.pause();
  if (status != LUA_OK && !now_->ended_early) outcome = failed(message_on_top(state_), name);
  now_->stage.drop();
  lua_settop(state_, 0);
  return outcome;
}

Outcome Session::check(const std::string& code, const std::string& name) {
  now_ = new_activity(Activity::Mode::registering, greeting_.limits.chunk);
  now_->source = code;
  Outcome outcome = evaluate_in(environment_, code, name);
  Json specs = Json::array();
  for (const auto& rule : now_->rules) specs.push_back(rule->spec);
  outcome.value = {{"rules", std::move(specs)}, {"order", now_->planned}, {"waits", now_->waits_for}};
  return outcome;
}

Outcome Session::register_chunk(std::int64_t chunk, const std::string& code, const std::string& name) {
  now_ = new_activity(Activity::Mode::registering, greeting_.limits.chunk);
  now_->source = code;
  chunk_ = chunk;
  lua_getfield(state_, LUA_REGISTRYINDEX, kOwn);
  push_environment_like(state_, lua_gettop(state_));
  const int environment = luaL_ref(state_, LUA_REGISTRYINDEX);
  lua_settop(state_, 0);
  Outcome outcome = evaluate_in(environment, code, name);
  luaL_unref(state_, LUA_REGISTRYINDEX, environment);  // its functions hold it
  Json specs = Json::array();
  for (const auto& rule : now_->rules) specs.push_back(rule->spec);
  if (!outcome.error) outcome.value = {{"rules", std::move(specs)}};
  return outcome;
}

Outcome Session::failed(const std::string& message, const std::string& name) {
  now_->stage.drop();
  for (auto& rule : now_->rules) rule->dropped = rule->number == 0;
  Outcome outcome;
  outcome.error = Error{ErrorKind::script, message.substr(0, kMaxMessage)};
  if (message == "not enough memory")
    outcome.error->message +=
        ": a session has " + std::to_string(greeting_.limits.memory_bytes >> 20) + " MiB";
  const auto& known = now_->last_error;
  if (known && message.ends_with(known->message) && known->kind != ErrorKind::usage)
    outcome.error->kind = known->kind;
  if (message.starts_with(name + ":"))
    if (const int line = std::atoi(message.c_str() + name.size() + 1); line > 0) outcome.error_line = line;
  return outcome;
}

void Session::settings_changed(const Json& settings) {
  for (const auto& [name, item] : settings.items()) {
    if (!item.is_object() || !item.contains("value")) continue;
    if (auto value = greeting_.schema.check(name, item["value"]))
      greeting_.settings.set(name, *std::move(value), item.value("source", ""));
  }
}

void Session::print(std::string_view text) {
  const std::size_t limit = greeting_.limits.output_bytes;
  std::size_t& printed = now_->printed;
  if (printed >= limit || now_->mode == Activity::Mode::registering) return;
  const std::size_t room = std::min(text.size(), limit - printed);
  if (greeting_.kind != Kind::job)
    printed += text.size();  // a job's goes into a file, and the console bounds that
  link_.output(text.substr(0, room), Stream::out);
  if (printed >= limit) talk("output cut at " + std::to_string(limit) + " bytes");
}

void Session::talk(std::string_view text) {
  if (now_->mode == Activity::Mode::registering) return;
  link_.output(std::string(text) + "\n", Stream::talk);
}

Json Session::look(std::string_view op, Json fields) {
  if (out_of_time()) throw ScriptError(now_->stop);
  return ask(op, std::move(fields));
}

Json Session::ask(std::string_view op, Json fields, const ConsoleLink::Note& note) {
  auto answer = link_.ask(op, std::move(fields), note);
  if (!answer) throw ScriptError(answer.error());
  return *std::move(answer);
}

}  // namespace footplate::lua
