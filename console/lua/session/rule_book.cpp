#include "console/lua/session/rule_book.h"

#include "console/lua/core/bind.h"

namespace footplate::lua {

std::shared_ptr<RegisteredRule> RuleBook::add(lua_State* state, RuleSpec spec, int function) {
  const SessionKind kind = greeting_.kind;
  Activity& now = console_.activity();
  if (now.stage.in_at()) throw ScriptError("at() can't be used inside at(), nor can other rules");
  if (now.mode == Activity::Mode::handler && kind != SessionKind::job)
    throw ScriptError("a rule can't register another one; one of a job script can (footplate run --script)");
  if (kind == SessionKind::session && now.has_waited)
    throw ScriptError(
        "register rules before a chunk's first wait, or in a chunk of their own: the chunk runs "
        "again in the rules' process, where nothing waits");
  auto rule = std::make_shared<RegisteredRule>();
  rule->spec = std::move(spec);
  if (kind == SessionKind::session) {
    now.rules.push_back(rule);
    return rule;
  }
  const bool job = kind == SessionKind::job;
  const std::int64_t index = job ? ++job_rules_ : static_cast<std::int64_t>(now.rules.size());
  rule->spec.index = index;
  lua_pushvalue(state, function);
  const int reference = luaL_ref(state, LUA_REGISTRYINDEX);
  int& kept = functions_.try_emplace({chunk_, index}, LUA_NOREF).first->second;
  luaL_unref(state, LUA_REGISTRYINDEX, std::exchange(kept, reference));
  if (job)
    rule->number = console_.ask(request::RegisterRule{rule->spec}).rule;
  else
    now.rules.push_back(rule);
  return rule;
}

void RuleBook::send() {
  Activity& now = console_.activity();
  if (greeting_.kind != SessionKind::session || now.rules.empty()) return;
  request::RegisterRules chunk{now.source, now.name, {}};
  bool any = false;
  for (const auto& rule : now.rules) {
    any = any || !rule->dropped;
    chunk.rules.push_back(rule->spec);
    chunk.rules.back().dropped = rule->dropped;
  }
  if (!any) return now.rules.clear();
  const Waiting waiting(now.clock);
  const auto [numbers] = console_.ask(chunk);
  for (std::size_t i = 0; i < now.rules.size() && i < numbers.size(); ++i) {
    RegisteredRule& rule = *now.rules[i];
    if (rule.dropped) continue;
    rule.number = numbers[i];
    console_.talk("rule " + std::to_string(rule.number) + ": " + rule.spec.text + " registered");
  }
}

void RuleBook::drop() {
  for (const auto& rule : std::exchange(console_.activity().rules, {})) {
    rule->dropped = true;
    if (rule->number != 0) console_.ask(request::SwitchRuleOff{rule->number});
  }
}

std::optional<int> RuleBook::function(std::int64_t chunk, std::int64_t index) const {
  const auto found = functions_.find({chunk, index});
  return found == functions_.end() ? std::nullopt : std::optional(found->second);
}

}  // namespace footplate::lua
