#include <algorithm>
#include <new>

#include "console/lua/api/api.h"
#include "console/lua/core/bind.h"
#include "console/lua/core/convert.h"
#include "console/lua/core/listing.h"
#include "console/lua/session/confirmation.h"
#include "console/lua/session/session.h"
#include "protocol/own_session.h"

// Orders as scripts see them: set{}, at(), orders(), undo(), and handles.

namespace footplate::lua {
namespace {

constexpr const char* kHandle = "footplate.handle";

struct Handle {
  std::shared_ptr<StagedOrder> order;
  int call = -1;  ///< index in the order; -1: the order itself
};

Handle& handle_at(lua_State* state, int index) {
  return *static_cast<Handle*>(luaL_checkudata(state, index, kHandle));
}

std::string handle_name(const Handle& handle) {
  const auto& calls = handle.order->order.calls;
  if (handle.call >= 0 && static_cast<std::size_t>(handle.call) < calls.size())
    return calls[static_cast<std::size_t>(handle.call)].action;
  return "order";
}

/// The state of a call once its order is applied, else of the order. Asks the console.
Json handle_report(Session& session, Handle& handle) {
  session.refresh(*handle.order);
  Json report = handle.order->report;
  report["state"] = handle.order->state();
  if (handle.call < 0 || report["state"] != "applied") return report;
  return session.ask(
      "wait_call",
      {{"order", report.value("id", std::uint64_t{0})}, {"call", handle.call}, {"timeout_s", 0}});
}

int handle_wait(lua_State* state) {
  Handle& handle = handle_at(state, 1);
  std::optional<double> timeout_s;
  if (!lua_isnoneornil(state, 2)) timeout_s = luaL_checknumber(state, 2);
  const Json report = session_of(state).wait_call(*handle.order, handle.call, timeout_s);
  push_json(state,
            handle.call < 0 ? report.value("applied", Json::object()) : report.value("result", Json()));
  return 1;
}

int handle_cancel(lua_State* state) {
  Handle& handle = handle_at(state, 1);
  if (handle.order->sent() && session_of(state).activity().mode == Activity::Mode::registering) {
    lua_pushboolean(state, 1);  // the chunk did it
    return 1;
  }
  const std::string why_not = session_of(state).cancel(*handle.order, handle.call);
  lua_pushboolean(state, why_not.empty() ? 1 : 0);
  if (why_not.empty()) return 1;
  lua_pushlstring(state, why_not.data(), why_not.size());
  return 2;
}

int handle_index(lua_State* state) {
  Handle& handle = handle_at(state, 1);
  const std::string key = string_argument(state, 2);
  if (key == "wait" || key == "cancel") {
    lua_pushcfunction(state, key == "wait" ? bound<handle_wait> : bound<handle_cancel>);
    return 1;
  }
  if (key == "order") {
    push_json(state, handle.order->report.value("id", handle.order->order.id));
    return 1;
  }
  if (key != "state" && key != "result" && key != "error" && key != "step")
    throw ScriptError("a handle has :wait(), :cancel(), .state, .result, .error, .step and .order, not '" +
                      key + "'");
  Json value = handle_report(session_of(state), handle).value(key, Json());
  const Json applied = handle.order->report.value("applied", Json());
  if (key == "step" && applied.is_object()) value = applied.value("step", Json());
  if (key == "result" && handle.call < 0) value = applied;
  push_json(state, value);
  return 1;
}

int handle_text(lua_State* state) {
  Handle& handle = handle_at(state, 1);
  const Json report = handle_report(session_of(state), handle);
  std::string text = handle_name(handle) + " " + report.value("state", "?");
  if (const auto id = handle.order->report.value("id", handle.order->order.id); id != 0)
    text += " (order " + std::to_string(id) + ")";
  lua_pushlstring(state, text.data(), text.size());
  return 1;
}

int handle_json(lua_State* state) {
  Handle& handle = handle_at(state, 1);
  Json json = {{"state", handle_report(session_of(state), handle).value("state", "?")},
               {"order", handle.order->report.value("id", handle.order->order.id)}};
  if (handle.call >= 0) {
    json["call"] = handle.call;
    json["action"] = handle_name(handle);
  }
  push_json(state, json);
  return 1;
}

int handle_collect(lua_State* state) {
  handle_at(state, 1).~Handle();
  return 0;
}

int set(lua_State* state) {
  luaL_checktype(state, 1, LUA_TTABLE);
  stage_table(state, 1, "");
  return 0;
}

/// at(step, { … }): an order of its own, committed ahead. at(step, function): a rule (rules.cpp).
int at(lua_State* state) {
  Stage& stage = session_of(state).stage();
  const lua_Integer step = luaL_checkinteger(state, 1);
  if (lua_isfunction(state, 2) || lua_isfunction(state, 3)) return register_at(state);
  if (!lua_istable(state, 2))
    throw ScriptError(
        "at takes a step and a table, as in at(20000, { sched = { base_lr = 1e-4 } }), or a function");
  if (!stage.begin_at(step)) throw ScriptError("at() can't be used inside at()");
  try {
    stage_table(state, 2, "");
  } catch (...) {
    stage.abandon_at();
    throw;
  }
  push_handle(state, stage.finish_at(), -1);
  return 1;
}

std::string describe(const Json& report) {
  std::string text = report.value("state", "?");
  const auto order = order_from_json(report.value("order", Json::object()));
  if (text == "applied" && report.contains("applied"))
    text += " at step " + report["applied"].value("step", Json()).dump();
  else if (report.contains("step"))
    text += " for step " + report["step"].dump();
  if (!order) return text;
  if (!order->user.empty()) text += " · " + given_by(order->user, order->session);
  for (const Change& change : order->changes) text += " · " + change.name + " -> " + display(change.value);
  for (const Call& call : order->calls) text += " · " + to_text(call);
  if (report.contains("text")) text += " · " + report.value("text", "");
  return text;
}

std::uint64_t id_of(const Json& report) {
  return report.value("id", std::uint64_t{0});
}

int orders_call(lua_State* state) {
  Session& session = session_of(state);
  const Json reports = session.look("orders");
  std::string text;
  for (const auto& report : reports)
    text += (text.empty() ? "" : "\n") + std::to_string(report.value("id", std::uint64_t{0})) + "  " +
            describe(report);
  push_listing(state, reports, text.empty() ? "no orders yet" : text);
  return 1;
}

void push_reported(lua_State* state, const Json& report) {
  auto order = std::make_shared<StagedOrder>();
  if (auto whole = order_from_json(report.value("order", Json::object()))) order->order = *std::move(whole);
  order->order.id = report.value("id", std::uint64_t{0});
  order->report = report;
  push_handle(state, std::move(order), -1);
}

/// orders[12]
int orders_index(lua_State* state) {
  const lua_Integer id = number_in_brackets(state, "orders[17]");
  for (const auto& report : session_of(state).look("orders")) {
    if (report.value("id", lua_Integer{0}) != id) continue;
    push_reported(state, report);
    return 1;
  }
  throw ScriptError("there is no order " + std::to_string(id) + "; orders() lists them");
}

/// Those that rank 0 has numbered, by number.
Json numbered_orders(lua_State* state) {
  Json reports = session_of(state).look("orders");
  auto& list = reports.get_ref<Json::array_t&>();
  std::erase_if(list, [](const Json& report) { return id_of(report) == 0; });
  std::ranges::sort(list, {}, id_of);
  return reports;
}

/// for id, order in pairs(orders)
int orders_pairs(lua_State* state) {
  return push_pairs(state, numbered_orders(state), [state](const Json& report) {
    lua_pushinteger(state, static_cast<lua_Integer>(id_of(report)));
    push_reported(state, report);
  });
}

int orders_length(lua_State* state) {
  lua_pushinteger(state, static_cast<lua_Integer>(numbered_orders(state).size()));
  return 1;
}

/// The settings that `report` moved and its order named.
std::vector<Moved> asked_for(const Json& report) {
  const auto applied = applied_from_json(report.value("applied", Json::object()));
  const auto order = order_from_json(report.value("order", Json::object()));
  std::vector<Moved> moved;
  if (!applied || !order) return moved;
  for (const Moved& item : applied->moved)
    if (item.before != item.after && std::any_of(order->changes.begin(), order->changes.end(),
                                                 [&](const Change& c) { return c.name == item.name; }))
      moved.push_back(item);
  return moved;
}

/// Orders that `user` gave, rather than a rule or a job in the user's name, and that came to something.
std::vector<Json> given_orders(const Json& reports, const std::string& user) {
  std::vector<Json> own;
  for (const auto& report : reports) {
    const Json order = report.value("order", Json::object());
    const std::string state = report.value("state", "");
    const bool nothing = state == "refused" || state == "aborted" || state == "withdrawn";
    if (!nothing && order.value("user", "") == user && given_by(user, order.value("session", "")) == user)
      own.push_back(report);
  }
  return own;
}

/// The one that changed settings last; null where none did.
const Json* last_that_moved(const std::vector<Json>& reports) {
  const Json* last = nullptr;
  std::int64_t last_step = -1;
  for (const auto& report : reports) {
    if (report.value("state", "") != "applied" || asked_for(report).empty()) continue;
    const auto step = report["applied"].value("step", std::int64_t{0});
    if (step < last_step || (step == last_step && id_of(report) < id_of(*last))) continue;
    last = &report;
    last_step = step;
  }
  return last;
}

/// What somebody means by undo() is the order given last. Where that is one that can't be put back, an older
/// one may not be meant, an undo() least of all: what it took away must not come again.
void refuse_another(const std::vector<Json>& reports, const Json& last) {
  const auto newest = std::ranges::max_element(reports, {}, id_of);
  if (id_of(*newest) == id_of(last)) return;
  const std::string number = std::to_string(id_of(*newest));
  if (newest->value("state", "") == "committed")
    throw ScriptError("order " + number + " came last and waits for its step: orders[" + number +
                      "]:cancel() withdraws it");
  if (last["order"].value("source", "").find("undo") != std::string::npos)
    throw ScriptError("order " + std::to_string(id_of(last)) + " was an undo() already, and order " + number +
                      ", given after it, changed no setting that could be put back; orders() shows both");
}

/// "comm.timeout_s = 600": puts back what `report` moved.
std::string to_put_back(const Json& report) {
  std::string text;
  for (const Moved& item : asked_for(report))
    text += (text.empty() ? "" : "; ") + item.name + " = " + to_text(item.before);
  return text;
}

/// What footplate itself has changed (comm.auto) after the user's last order may be meant by undo(), or not:
/// both are named. What isn't in force any more isn't meant.
void refuse_footplates(const Session& session, const Json& all, const Json* last) {
  for (const Json& report : all) {
    if (report.value("order", Json::object()).value("session", "") != kOwnSession) continue;
    if (report.value("state", "") != "applied" || (last != nullptr && id_of(report) < id_of(*last))) continue;
    const auto moved = asked_for(report);
    const bool in_force = !moved.empty() && std::ranges::all_of(moved, [&](const Moved& item) {
      return to_json(session.settings().value(item.name)) == to_json(item.after);
    });
    if (!in_force) continue;
    std::string text = "order " + std::to_string(id_of(report)) +
                       " came last, and is footplate's own (comm.auto): to put "
                       "it back, " +
                       to_put_back(report);
    if (last != nullptr)
      text += "; to put back your order " + std::to_string(id_of(*last)) + ", " + to_put_back(*last);
    throw ScriptError(text);
  }
}

/// Puts back what this user's last order changed, if nobody has touched it since.
int undo(lua_State* state) {
  Session& session = session_of(state);
  const std::string& user = session.greeting().user;
  const Json all = session.look("orders");
  const std::vector<Json> reports = given_orders(all, user);
  const Json* last = last_that_moved(reports);
  refuse_footplates(session, all, last);
  if (last == nullptr) throw ScriptError("there is no order of " + user + " that changed a setting");
  refuse_another(reports, *last);
  const std::string name = "order " + std::to_string(id_of(*last));
  const auto moved = asked_for(*last);
  for (const Moved& item : moved)
    if (to_json(session.settings().value(item.name)) != to_json(item.after))
      throw ScriptError(name + " set " + item.name + " to " + display(item.after) + ", but it is " +
                        display(session.settings().value(item.name)) + " now (" +
                        session.settings().source(item.name) +
                        "); to put it back all the same: " + item.name + " = " + to_text(item.before));
  for (const Moved& item : moved) {
    if (to_json(session.stage().value(item.name)) != to_json(item.after))
      throw ScriptError("this chunk has set " + item.name +
                        " already; undo() puts back what your last applied order " +
                        "changed, one order a chunk");
    auto staged = session.stage().assign(item.name, to_json(item.before));
    if (staged) staged = session.stage().expect(item.name, to_json(item.after));
    if (!staged) throw ScriptError(staged.error());
    session.stage().force(item.name);  // it was so before
  }
  return 0;
}

void add_orders_object(lua_State* state, int own) {
  constexpr luaL_Reg kMethods[] = {{"__index", bound<orders_index>}, {"__call", bound<orders_call>},
                                   {"__pairs", bound<orders_pairs>}, {"__ipairs", bound<orders_pairs>},
                                   {"__len", bound<orders_length>},  {nullptr, nullptr}};
  add_locked_object(state, own, "orders", kMethods);
}

}  // namespace

void push_handle(lua_State* state, std::shared_ptr<StagedOrder> order, int call) {
  new (lua_newuserdatauv(state, sizeof(Handle), 0)) Handle{std::move(order), call};
  luaL_setmetatable(state, kHandle);
}

void open_orders(lua_State* state, int own) {
  constexpr luaL_Reg kMethods[] = {{"__index", bound<handle_index>},
                                   {"__tostring", bound<handle_text>},
                                   {"__json", bound<handle_json>},
                                   {"__gc", handle_collect},
                                   {nullptr, nullptr}};
  add_locked_type(state, kHandle, kMethods);
  constexpr luaL_Reg kFunctions[] = {{"set", bound<set>},
                                     {"at", bound<at>},
                                     {"undo", bound<undo>},
                                     {"try", bound<try_settings>},
                                     {nullptr, nullptr}};
  lua_pushvalue(state, own);
  luaL_setfuncs(state, kFunctions, 0);
  lua_pop(state, 1);
  add_orders_object(state, own);
}

}  // namespace footplate::lua
