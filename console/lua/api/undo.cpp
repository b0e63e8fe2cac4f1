#include <algorithm>
#include <new>

#include "console/lua/api/api.h"
#include "console/lua/core/bind.h"
#include "console/lua/session/session.h"
#include "protocol/own_session.h"

// undo(), redo(): put back what this session's orders changed, the last one first, and bring it back.

namespace footplate::lua {
namespace {

constexpr const char* kHistory = "footplate.undo";  ///< the registry's key of the session's UndoHistory

/// An order of this session that undoes another one, or does it again.
struct Taking {
  std::shared_ptr<StagedOrder> order;
  std::uint64_t target = 0;
  bool redo = false;
};
using UndoHistory = std::vector<Taking>;

int history_collect(lua_State* state) {
  static_cast<UndoHistory*>(lua_touserdata(state, 1))->~UndoHistory();
  return 0;
}

UndoHistory& history_of(lua_State* state) {
  if (lua_getfield(state, LUA_REGISTRYINDEX, kHistory) == LUA_TNIL) {
    lua_pop(state, 1);
    constexpr luaL_Reg kMethods[] = {{"__gc", history_collect}, {nullptr, nullptr}};
    add_locked_type(state, "footplate.undo_history", kMethods);
    new (lua_newuserdatauv(state, sizeof(UndoHistory), 0)) UndoHistory();
    luaL_setmetatable(state, "footplate.undo_history");
    lua_pushvalue(state, -1);
    lua_setfield(state, LUA_REGISTRYINDEX, kHistory);
  }
  auto& history = *static_cast<UndoHistory*>(lua_touserdata(state, -1));
  lua_pop(state, 1);
  std::erase_if(history, [](const Taking& taking) { return taking.order->dropped; });
  return history;
}

/// The settings that `report` moved and its order named.
std::vector<Moved> asked_for(const OrderReport& report) {
  std::vector<Moved> moved;
  if (!report.applied || !report.order) return moved;
  const auto& changes = report.order->changes;
  for (const Moved& item : report.applied->moved)
    if (item.before != item.after &&
        std::ranges::any_of(changes, [&](const Change& c) { return c.name == item.name; }))
      moved.push_back(item);
  return moved;
}

/// "log.every = 50": what somebody types to have it as before the order.
std::string to_put_back(const OrderReport& report) {
  std::string text;
  for (const Moved& item : asked_for(report))
    text += (text.empty() ? "" : "; ") + item.name + " = " + to_text(item.before);
  return text;
}

std::string name_of(const OrderReport& report) {
  return "order " + std::to_string(report.id);
}

/// Orders of this session that came to something, or still may.
std::vector<OrderReport> own_orders(const std::vector<OrderReport>& reports, const Greeting& greeting) {
  std::vector<OrderReport> own;
  for (const OrderReport& report : reports) {
    const bool nothing = is_final(report.state) && report.state != OrderState::applied;
    if (!nothing && report.order && report.order->session == greeting.session &&
        report.order->user == greeting.user)
      own.push_back(report);
  }
  const auto place = [](const OrderReport& report) {
    return std::pair(report.applied ? report.applied->step : report.step.value_or(0), report.id);
  };
  std::ranges::sort(own, {}, place);
  return own;
}

/// What undo() and redo() would take, the next one last.
struct Takeable {
  std::vector<const OrderReport*> done, undone;
};

/// `reports` are this session's own, in the order in which they applied.
Takeable takeable(const std::vector<OrderReport>& reports, const UndoHistory& history) {
  Takeable all;
  const auto take = [&](const Taking& taking) {
    auto& from = taking.redo ? all.undone : all.done;
    auto& to = taking.redo ? all.done : all.undone;
    const auto found = std::ranges::find(from, taking.target, &OrderReport::id);
    if (found == from.end()) return;  // so old that the console has forgotten it
    to.push_back(*found);
    from.erase(found);
  };
  for (const OrderReport& report : reports) {
    const auto is_its = [&](const Taking& taking) { return taking.order->number() == report.id; };
    if (report.state != OrderState::applied) continue;
    if (std::ranges::any_of(history, is_its)) {
      for (const Taking& taking : history)
        if (is_its(taking)) take(taking);
    } else if (!asked_for(report).empty()) {
      all.done.push_back(&report);
      all.undone.clear();
    }
  }
  for (const Taking& taking : history)
    if (!taking.order->sent()) take(taking);  // earlier in this chunk
  return all;
}

/// What footplate itself has changed (comm.auto) after this session's last order may be meant by undo(), or
/// not: both are named. What isn't in force any more isn't meant.
void refuse_footplates(const Session& session, const std::vector<OrderReport>& all, const OrderReport* last) {
  for (const OrderReport& report : all) {
    if (!report.order || report.order->session != kOwnSession) continue;
    if (report.state != OrderState::applied || (last != nullptr && report.id < last->id)) continue;
    const auto moved = asked_for(report);
    const bool in_force = !moved.empty() && std::ranges::all_of(moved, [&](const Moved& item) {
      return to_json(session.settings().value(item.name)) == to_json(item.after);
    });
    if (!in_force) continue;
    std::string text = name_of(report) + " came last, and is footplate's own (comm.auto): to put it back, " +
                       to_put_back(report);
    if (last != nullptr) text += "; to put back your " + name_of(*last) + ", " + to_put_back(*last);
    throw ScriptError(text);
  }
}

/// Where this session has nothing to undo: whose the last change is, and how it is put back.
[[noreturn]] void refuse_empty(const std::vector<OrderReport>& all, const Takeable& own) {
  if (!own.undone.empty())
    throw ScriptError("all that this session changed is undone; redo() brings " +
                      name_of(*own.undone.back()) + " back");
  const OrderReport* last = nullptr;
  for (const OrderReport& report : all)
    if (report.state == OrderState::applied && !asked_for(report).empty() &&
        (last == nullptr || report.id > last->id))
      last = &report;
  std::string text = "there is no order of this session that changed a setting";
  if (last != nullptr)
    text += "; the last change is " + name_of(*last) + " of " +
            given_by(last->order->user, last->order->session) + " in " + last->order->session +
            ": to put it back, " + to_put_back(*last);
  throw ScriptError(text);
}

/// One that waits for its step may be meant.
void refuse_waiting(const std::vector<OrderReport>& reports) {
  const auto newest = std::ranges::max_element(reports, {}, &OrderReport::id);
  if (newest == reports.end() || newest->state != OrderState::committed) return;
  throw ScriptError(name_of(*newest) + " came last and waits for its step: orders[" +
                    std::to_string(newest->id) + "]:cancel() withdraws it");
}

/// Stages `from` -> `to` of each setting, if nobody has touched it since.
void stage_taking(Session& session, const OrderReport& target, bool redo) {
  Stage& stage = session.stage();
  const auto moved = asked_for(target);
  for (const Moved& item : moved) {
    const Json from = to_json(redo ? item.before : item.after);
    const Value& now = session.settings().value(item.name);
    if (to_json(stage.value(item.name)) == from) continue;
    const Value& wanted = redo ? item.after : item.before;
    if (to_json(now) != to_json(stage.value(item.name)))
      throw ScriptError("this chunk has set " + item.name + " already, which " + name_of(target) +
                        " changed");
    throw ScriptError(name_of(target) + (redo ? " changed " : " set ") + item.name +
                      (redo ? " from " + display(item.before) : " to " + display(item.after)) +
                      ", but it is " + display(now) + " now (" + session.settings().source(item.name) +
                      "); to set it all the same: " + item.name + " = " + to_text(wanted));
  }
  for (const Moved& item : moved) {
    auto staged = stage.assign(item.name, to_json(redo ? item.after : item.before));
    if (staged) staged = stage.expect(item.name, to_json(session.settings().value(item.name)));
    if (!staged) throw ScriptError(staged.error());
    stage.force(item.name);  // it was so before
  }
}

int take(lua_State* state, bool redo) {
  Session& session = session_of(state);
  if (session.stage().in_at())
    throw ScriptError(std::string(redo ? "redo" : "undo") + "() counts at once, not within at()");
  const auto all = session.look(request::Orders{});
  const std::vector<OrderReport> own = own_orders(all, session.greeting());
  UndoHistory& history = history_of(state);
  const Takeable can = takeable(own, history);
  const auto& from = redo ? can.undone : can.done;
  const OrderReport* target = from.empty() ? nullptr : from.back();
  if (redo) {
    if (target == nullptr)
      throw ScriptError("there is nothing to redo: no undo() of this session is the last change");
  } else {
    refuse_footplates(session, all, target);
    if (target == nullptr) refuse_empty(all, can);
    refuse_waiting(own);
  }
  stage_taking(session, *target, redo);
  const auto order = session.stage().order_now();
  order->title += (order->title.empty() ? "" : ", ") + name_of(*target) + (redo ? " redone" : " undone");
  history.push_back({order, target->id, redo});
  return 0;
}

void check_no_argument(lua_State* state, const char* name) {
  if (lua_gettop(state) > 0)
    throw ScriptError(std::string(name) +
                      " takes no argument: it goes back one order of this session at a time; "
                      "orders() lists them");
}

int undo(lua_State* state) {
  check_no_argument(state, "undo");
  return take(state, false);
}

int redo(lua_State* state) {
  check_no_argument(state, "redo");
  return take(state, true);
}

constexpr Registration kUndoFunctions[] = {
    {.doc = {.name = "undo",
             .role = Role::operate,
             .example = "undo()",
             .help = "puts back what this session's last order changed, if nobody has touched it since; once "
                     "more takes the one before it",
             .in_overview = true},
     .handler = bound<undo>},
    {.doc = {.name = "redo",
             .role = Role::operate,
             .example = "redo()",
             .help = "brings back what undo() took",
             .in_overview = true},
     .handler = bound<redo>},
};

}  // namespace

std::span<const Registration> undo_functions() {
  return kUndoFunctions;
}

}  // namespace footplate::lua
