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

/// What is known of it now. Asks the console.
struct HandleStatus {
  std::string state;  ///< of the call once its order is applied, else of the order
  std::string error;
  Json result;  ///< of an order what it did
  std::optional<std::int64_t> step;
};

HandleStatus status_of(Session& session, Handle& handle) {
  const auto call = session.orders().call_now(*handle.order, handle.call);
  const OrderReport& report = handle.order->report;
  HandleStatus status{handle.order->state_word(), report.error, {}, report.step};
  if (report.applied) status.step = report.applied->step;
  if (report.applied && handle.call < 0) status.result = to_json(*report.applied);
  if (!call) return status;
  status.state = to_string(call->state);
  status.error = call->error;
  status.result = call->result;
  return status;
}

int handle_wait(lua_State* state) {
  Handle& handle = handle_at(state, 1);
  std::optional<double> timeout_s;
  if (!lua_isnoneornil(state, 2)) timeout_s = luaL_checknumber(state, 2);
  push_json(state, session_of(state).wait_call(*handle.order, handle.call, timeout_s));
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
    lua_pushinteger(state, static_cast<lua_Integer>(handle.order->number()));
    return 1;
  }
  if (key != "state" && key != "result" && key != "error" && key != "step")
    throw ScriptError("a handle has :wait(), :cancel(), .state, .result, .error, .step and .order, not '" +
                      key + "'");
  const HandleStatus status = status_of(session_of(state), handle);
  Json fields = {{"state", status.state}, {"result", status.result}};
  if (!status.error.empty()) fields["error"] = status.error;
  if (status.step) fields["step"] = *status.step;
  push_field(state, fields, key);
  return 1;
}

int handle_text(lua_State* state) {
  Handle& handle = handle_at(state, 1);
  const HandleStatus status = status_of(session_of(state), handle);
  std::string text = handle_name(handle) + " " + status.state;
  if (const auto number = handle.order->number(); number != 0)
    text += " (order " + std::to_string(number) + ")";
  if (!status.error.empty()) text += ": " + status.error;
  lua_pushlstring(state, text.data(), text.size());
  return 1;
}

int handle_json(lua_State* state) {
  Handle& handle = handle_at(state, 1);
  const HandleStatus status = status_of(session_of(state), handle);
  Json json = {{"state", status.state}, {"order", handle.order->number()}};
  if (!status.error.empty()) json["error"] = status.error;
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

std::string describe(const OrderReport& report) {
  std::string text(to_string(report.state));
  if (report.state == OrderState::applied && report.applied)
    text += " at step " + std::to_string(report.applied->step);
  else if (report.step)
    text += " for step " + std::to_string(*report.step);
  const Order order = report.order.value_or(Order{});
  if (!order.user.empty()) text += " · " + given_by(order.user, order.session);
  for (const Change& change : order.changes) text += " · " + change.name + " -> " + display(change.value);
  for (const Call& call : order.calls) text += " · " + shown_text(call);
  if (!report.text.empty()) text += " · " + report.text;
  return text;
}

std::vector<OrderReport> all_orders(lua_State* state) {
  return session_of(state).look(request::Orders{});
}

int orders_call(lua_State* state) {
  const auto reports = all_orders(state);
  std::string text;
  for (const OrderReport& report : reports)
    text += (text.empty() ? "" : "\n") + std::to_string(report.id) + "  " + describe(report);
  push_listing(state, list_of(reports), text.empty() ? "no orders yet" : text);
  return 1;
}

void push_reported(lua_State* state, const OrderReport& report) {
  auto order = std::make_shared<StagedOrder>();
  order->order = report.order.value_or(Order{});
  order->order.id = report.id;
  order->ref = report.ref;
  order->report = report;
  push_handle(state, std::move(order), -1);
}

/// orders[12], and orders[0] where a single open one has no number yet.
int orders_index(lua_State* state) {
  const lua_Integer id = number_in_brackets(state, "orders[17]");
  std::vector<OrderReport> reports = all_orders(state);
  std::erase_if(reports, [id](const OrderReport& report) {
    return static_cast<lua_Integer>(report.id) != id || (id == 0 && is_final(report.state));
  });
  if (reports.size() > 1)
    throw ScriptError(std::to_string(reports.size()) +
                      " orders have no number yet; whoever gave them can cancel each by its handle");
  if (reports.empty()) throw ScriptError("there is no order " + std::to_string(id) + "; orders() lists them");
  push_reported(state, reports.front());
  return 1;
}

/// Those that rank 0 has numbered, by number.
std::vector<OrderReport> numbered_orders(lua_State* state) {
  std::vector<OrderReport> reports = all_orders(state);
  std::erase_if(reports, [](const OrderReport& report) { return report.id == 0; });
  std::ranges::sort(reports, {}, &OrderReport::id);
  return reports;
}

/// for id, order in pairs(orders)
int orders_pairs(lua_State* state) {
  return push_pairs(state, numbered_orders(state), [state](const OrderReport& report) {
    lua_pushinteger(state, static_cast<lua_Integer>(report.id));
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
  constexpr luaL_Reg kMethods[] = {{"__index", bound<orders_index>},
                                   {"__call", bound<orders_call>},
                                   {"__pairs", bound<orders_pairs>},
                                   {"__ipairs", bound<orders_pairs>},
                                   {"__len", bound<orders_length>},
                                   {"__json", bound<orders_call>},
                                   {"__tostring", bound<text_of_contents<orders_call>>},
                                   {nullptr, nullptr}};
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

void push_handle(lua_State* state, std::shared_ptr<StagedOrder> order, int call) {
  new (lua_newuserdatauv(state, sizeof(Handle), 0)) Handle{std::move(order), call};
  luaL_setmetatable(state, kHandle);
}

std::span<const Registration> order_functions() {
  return kOrderFunctions;
}

}  // namespace footplate::lua
