#include <algorithm>
#include <new>

#include "console/lua/api/api.h"
#include "console/lua/core/bind.h"
#include "console/lua/core/convert.h"
#include "console/lua/core/listing.h"
#include "console/lua/session/confirmation.h"
#include "console/lua/session/session.h"
#include "protocol/own_session.h"

// Orders as scripts see them: orders(), orders[17], and handles.

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
  session.orders().refresh(*handle.order);
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
  const std::string why_not = session_of(state).orders().cancel(*handle.order, handle.call);
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
  std::erase_if(list, [](const Json& report) { return order_number(report) == 0; });
  std::ranges::sort(list, {}, order_number);
  return reports;
}

/// for id, order in pairs(orders)
int orders_pairs(lua_State* state) {
  return push_pairs(state, numbered_orders(state), [state](const Json& report) {
    lua_pushinteger(state, static_cast<lua_Integer>(order_number(report)));
    push_reported(state, report);
  });
}

int orders_length(lua_State* state) {
  lua_pushinteger(state, static_cast<lua_Integer>(numbered_orders(state).size()));
  return 1;
}

int push_orders(lua_State* state) {
  constexpr luaL_Reg kHandleMethods[] = {{"__index", bound<handle_index>},
                                         {"__tostring", bound<handle_text>},
                                         {"__json", bound<handle_json>},
                                         {"__gc", handle_collect},
                                         {nullptr, nullptr}};
  add_locked_type(state, kHandle, kHandleMethods);
  constexpr luaL_Reg kMethods[] = {{"__index", bound<orders_index>}, {"__call", bound<orders_call>},
                                   {"__pairs", bound<orders_pairs>}, {"__ipairs", bound<orders_pairs>},
                                   {"__len", bound<orders_length>},  {nullptr, nullptr}};
  push_locked_object(state, kMethods);
  return 1;
}

constexpr Registration kOrderFunctions[] = {
    {.doc = {.name = "orders",
             .role = Role::view,
             .example = "orders()",
             .help = "all orders, open ones first; orders[17]:cancel() withdraws one",
             .in_overview = true},
     .form = Form::object,
     .handler = bound<push_orders>},
};

}  // namespace

std::uint64_t order_number(const Json& report) {
  return report.value("id", std::uint64_t{0});
}

void push_handle(lua_State* state, std::shared_ptr<StagedOrder> order, int call) {
  new (lua_newuserdatauv(state, sizeof(Handle), 0)) Handle{std::move(order), call};
  luaL_setmetatable(state, kHandle);
}

std::span<const Registration> order_functions() {
  return kOrderFunctions;
}

}  // namespace footplate::lua
