#include <algorithm>

#include "console/lua/api/api.h"
#include "console/lua/core/bind.h"
#include "console/lua/session/session.h"
#include "protocol/own_session.h"

// undo(): puts back what this user's last order changed.

namespace footplate::lua {
namespace {

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

/// Orders that `user` gave, rather than a rule or a job in the user's name, and that came to something.
std::vector<OrderReport> given_orders(const std::vector<OrderReport>& reports, const std::string& user) {
  std::vector<OrderReport> own;
  for (const OrderReport& report : reports) {
    const bool nothing = is_final(report.state) && report.state != OrderState::applied;
    if (!nothing && report.order && report.order->user == user &&
        given_by(user, report.order->session) == user)
      own.push_back(report);
  }
  return own;
}

/// The one that changed settings last; null where none did.
const OrderReport* last_that_moved(const std::vector<OrderReport>& reports) {
  const auto place = [](const OrderReport& report) { return std::pair(report.applied->step, report.id); };
  const OrderReport* last = nullptr;
  for (const OrderReport& report : reports) {
    if (report.state != OrderState::applied || asked_for(report).empty()) continue;
    if (last == nullptr || place(report) >= place(*last)) last = &report;
  }
  return last;
}

/// What somebody means by undo() is the order given last. Where that is one that can't be put back, an older
/// one may not be meant, an undo() least of all: what it took away must not come again.
void refuse_another(const std::vector<OrderReport>& reports, const OrderReport& last) {
  const auto newest = std::ranges::max_element(reports, {}, &OrderReport::id);
  if (newest->id == last.id) return;
  const std::string number = std::to_string(newest->id);
  if (newest->state == OrderState::committed)
    throw ScriptError("order " + number + " came last and waits for its step: orders[" + number +
                      "]:cancel() withdraws it");
  if (last.order->source.find("undo") != std::string::npos)
    throw ScriptError("order " + std::to_string(last.id) + " was an undo() already, and order " + number +
                      ", given after it, changed no setting that could be put back; orders() shows both");
}

/// "comm.timeout_s = 600": puts back what `report` moved.
std::string to_put_back(const OrderReport& report) {
  std::string text;
  for (const Moved& item : asked_for(report))
    text += (text.empty() ? "" : "; ") + item.name + " = " + to_text(item.before);
  return text;
}

/// What footplate itself has changed (comm.auto) after the user's last order may be meant by undo(), or not:
/// both are named. What isn't in force any more isn't meant.
void refuse_footplates(const Session& session, const std::vector<OrderReport>& all, const OrderReport* last) {
  for (const OrderReport& report : all) {
    if (!report.order || report.order->session != kOwnSession) continue;
    if (report.state != OrderState::applied || (last != nullptr && report.id < last->id)) continue;
    const auto moved = asked_for(report);
    const bool in_force = !moved.empty() && std::ranges::all_of(moved, [&](const Moved& item) {
      return to_json(session.settings().value(item.name)) == to_json(item.after);
    });
    if (!in_force) continue;
    std::string text = "order " + std::to_string(report.id) +
                       " came last, and is footplate's own (comm.auto): to put "
                       "it back, " +
                       to_put_back(report);
    if (last != nullptr)
      text += "; to put back your order " + std::to_string(last->id) + ", " + to_put_back(*last);
    throw ScriptError(text);
  }
}

/// Puts back what this user's last order changed, if nobody has touched it since.
int undo(lua_State* state) {
  Session& session = session_of(state);
  const std::string& user = session.greeting().user;
  const auto all = session.look(request::Orders{});
  const std::vector<OrderReport> reports = given_orders(all, user);
  const OrderReport* last = last_that_moved(reports);
  refuse_footplates(session, all, last);
  if (last == nullptr) throw ScriptError("there is no order of " + user + " that changed a setting");
  refuse_another(reports, *last);
  const std::string name = "order " + std::to_string(last->id);
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
