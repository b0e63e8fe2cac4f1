#include "console/lua/core/bind.h"
#include "console/lua/core/convert.h"
#include "console/lua/session/session.h"

// The part of a session that registers rules and runs their functions (docs/lua.md, "Rules").

namespace footplate::lua {
namespace {

/// What run_handler works on.
struct Firing {
  const Json& request;
  int function;  ///< a reference
};

}  // namespace

std::shared_ptr<RegisteredRule> Session::add_rule(lua_State* state, Json spec, int function) {
  const Kind kind = greeting_.kind;
  if (now_->stage.in_at()) throw ScriptError("at() can't be used inside at(), nor can other rules");
  if (now_->mode == Activity::Mode::handler && kind != Kind::job)
    throw ScriptError("a rule can't register another one; one of a job script can (footplate run --script)");
  if (kind == Kind::session && now_->has_waited)
    throw ScriptError(
        "register rules before a chunk's first wait, or in a chunk of their own: the chunk runs "
        "again in the rules' process, where nothing waits");
  auto rule = std::make_shared<RegisteredRule>();
  rule->spec = std::move(spec);
  if (kind == Kind::session) {
    now_->rules.push_back(rule);
    return rule;
  }
  const bool job = kind == Kind::job;
  const std::int64_t index = job ? ++job_rules_ : static_cast<std::int64_t>(now_->rules.size());
  rule->spec["index"] = index;
  lua_pushvalue(state, function);
  const int reference = luaL_ref(state, LUA_REGISTRYINDEX);
  int& kept = functions_.try_emplace({chunk_, index}, LUA_NOREF).first->second;
  luaL_unref(state, LUA_REGISTRYINDEX, std::exchange(kept, reference));
  if (job)
    rule->number = ask("rule", {{"spec", rule->spec}}).value("rule", std::int64_t{0});
  else
    now_->rules.push_back(rule);
  return rule;
}

/// A session's rules: the console runs the chunk again in the rules' process, and answers once they are
/// there.
void Session::send_rules() {
  if (greeting_.kind != Kind::session || now_->rules.empty()) return;
  Json specs = Json::array();
  bool any = false;
  for (const auto& rule : now_->rules) {
    any = any || !rule->dropped;
    specs.push_back(rule->spec);
    if (rule->dropped) specs.back()["dropped"] = true;
  }
  if (!any) return now_->rules.clear();
  const Waiting waiting(now_->clock);
  const Json answer =
      ask("wait_rules", {{"code", now_->source}, {"name", now_->name}, {"rules", std::move(specs)}});
  const Json numbers = answer.value("numbers", Json::array());
  for (std::size_t i = 0; i < now_->rules.size() && i < numbers.size(); ++i) {
    RegisteredRule& rule = *now_->rules[i];
    if (rule.dropped) continue;
    rule.number = numbers[i].get<std::int64_t>();
    talk("rule " + std::to_string(rule.number) + ": " + rule.spec.value("text", "") + " registered");
  }
}

void Session::drop_rules() {
  for (const auto& rule : std::exchange(now_->rules, {})) {
    rule->dropped = true;
    if (rule->number != 0) ask("rule_off", {{"rule", rule->number}});
  }
}

void Session::begin_wait(const char* what) {
  if (now_->mode == Activity::Mode::registering) {
    now_->ended_early = true;
    now_->waits_for = what;
    plan();
    now_->stop = std::string("ends at its first wait, ") + what;
    lua_sethook(state_, hook, LUA_MASKCOUNT, 1);  // so that a pcall can't go on
    throw ScriptError(now_->stop);
  }
  if (now_->mode == Activity::Mode::handler && std::string_view(what) != ":wait()")
    throw ScriptError(
        std::string(what) +
        " can't be used in a rule: the others would wait too; at(), after{} and on() are for later");
  finish_activity();
  now_->has_waited = true;
}

int Session::run_handler(lua_State* state) {
  Session& session = session_of(state);
  const Firing firing = *static_cast<Firing*>(lua_touserdata(state, 1));
  Stage& stage = session.stage();
  lua_settop(state, 0);
  if (firing.request.contains("at_step")) stage.begin_at(firing.request["at_step"].get<std::int64_t>());
  lua_rawgeti(state, LUA_REGISTRYINDEX, firing.function);
  push_json(state, firing.request.value("event", Json::object()));
  lua_call(state, 1, 1);
  if (session.out_of_time()) throw ScriptError(session.now_->stop);
  if (stage.in_at()) stage.finish_at();
  if (firing.request.value("stop_when", false) && lua_toboolean(state, 1) != 0) {
    const auto staged = stage.call("run.stop", {{"reason", firing.request.value("text", "a rule")}});
    if (!staged) throw ScriptError(staged.error());
  }
  session.commit();
  return 0;
}

Outcome Session::handle(const Json& request) {
  const std::chrono::duration<double, std::milli> budget(request.value("budget_ms", 2000.0));
  auto outer = std::exchange(now_, new_activity(Activity::Mode::handler, budget));
  now_->source = request.value("source", "");
  const std::string name = request.value("name", "rule");
  Outcome outcome;
  const auto found =
      functions_.find({request.value("chunk", std::int64_t{0}), request.value("index", std::int64_t{0})});
  if (found == functions_.end()) {
    outcome = failed("this rule's function is not in this process", name);
  } else {
    Firing firing{request, found->second};
    now_->clock.start(now_->limit);
    lua_sethook(handlers_, hook, LUA_MASKCOUNT, kHookEvery);
    lua_pushcfunction(handlers_, bound<run_handler>);
    lua_pushlightuserdata(handlers_, &firing);
    const int status = lua_pcall(handlers_, 1, 0, 0);
    now_->clock.pause();
    if (status != LUA_OK) outcome = failed(message_on_top(handlers_), name);
    lua_settop(handlers_, 0);
    outcome.value = {{"ran_ms", now_->clock.used().count() * 1e3}};
  }
  now_->stage.drop();
  now_ = std::move(outer);
  return outcome;
}

}  // namespace footplate::lua
