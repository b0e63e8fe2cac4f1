#include <algorithm>

#include "console/lua/api/api.h"
#include "console/lua/core/bind.h"
#include "console/lua/session/session.h"
#include "protocol/own_session.h"

// undo(): puts back what this user's last order changed.

namespace footplate::lua {
namespace {

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
    if (step < last_step || (step == last_step && order_number(report) < order_number(*last))) continue;
    last = &report;
    last_step = step;
  }
  return last;
}

/// What somebody means by undo() is the order given last. Where that is one that can't be put back, an older
/// one may not be meant, an undo() least of all: what it took away must not come again.
void refuse_another(const std::vector<Json>& reports, const Json& last) {
  const auto newest = std::ranges::max_element(reports, {}, order_number);
  if (order_number(*newest) == order_number(last)) return;
  const std::string number = std::to_string(order_number(*newest));
  if (newest->value("state", "") == "committed")
    throw ScriptError("order " + number + " came last and waits for its step: orders[" + number +
                      "]:cancel() withdraws it");
  if (last["order"].value("source", "").find("undo") != std::string::npos)
    throw ScriptError("order " + std::to_string(order_number(last)) + " was an undo() already, and order " +
                      number +
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
    if (report.value("state", "") != "applied" ||
        (last != nullptr && order_number(report) < order_number(*last)))
      continue;
    const auto moved = asked_for(report);
    const bool in_force = !moved.empty() && std::ranges::all_of(moved, [&](const Moved& item) {
      return to_json(session.settings().value(item.name)) == to_json(item.after);
    });
    if (!in_force) continue;
    std::string text = "order " + std::to_string(order_number(report)) +
                       " came last, and is footplate's own (comm.auto): to put "
                       "it back, " +
                       to_put_back(report);
    if (last != nullptr)
      text += "; to put back your order " + std::to_string(order_number(*last)) + ", " + to_put_back(*last);
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
  const std::string name = "order " + std::to_string(order_number(*last));
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

constexpr Registration kUndoFunctions[] = {
    {.doc = {.name = "undo",
             .role = Role::operate,
             .example = "undo()",
             .help = "puts back what your last order changed, if nobody has touched it since",
             .in_overview = true},
     .handler = bound<undo>},
};

}  // namespace

std::span<const Registration> undo_functions() {
  return kUndoFunctions;
}

}  // namespace footplate::lua
