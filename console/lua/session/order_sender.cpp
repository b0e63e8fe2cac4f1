#include "console/lua/session/order_sender.h"

#include "console/lua/core/bind.h"
#include "console/lua/session/confirmation.h"
#include "console/lua/session/questions.h"

namespace footplate::lua {
namespace {

constexpr std::size_t kMaxSource = 16U * 1024;  ///< bytes of a chunk that go into the journal
constexpr double kWithdrawTimeout_s = 6;        ///< rank 0 decides every order within 5 s
constexpr double kSilentTimeout_s = 0.1;        ///< … unless it is silent: no answer is to be expected

/// How a request names an order: by rank 0's number where it has one.
Json key_of(const StagedOrder& order) {
  const std::uint64_t id = order.report.value("id", order.order.id);
  if (id != 0) return {{"order", id}};
  return {{"ref", order.ref}};
}

std::string error_text(const Json& report) {
  return error_from_json(report.value("error", Json())).message;
}

std::string name_of(const StagedOrder& order) {
  const std::uint64_t id = order.report.value("id", order.order.id);
  return id == 0 ? "the order" : "order " + std::to_string(id);
}

/// Where an order ended in any other way than applied.
[[noreturn]] void throw_for(const StagedOrder& order) {
  const std::string state = order.state();
  if (state == "aborted")
    throw ScriptError(name_of(order) + " was aborted, nothing changed: " + error_text(order.report),
                      ErrorKind::timed_out);
  if (state == "withdrawn")
    throw ScriptError(name_of(order) + " was withdrawn, nothing changed", ErrorKind::refused);
  throw ScriptError(name_of(order) + " was refused, nothing changed: " + error_text(order.report),
                    ErrorKind::refused);
}

std::string planned_text(const StagedOrder& order) {
  std::string text;
  for (const Change& change : order.order.changes)
    text += (text.empty() ? "" : ", ") + change.name + " -> " + display(change.value);
  for (const Call& call : order.order.calls) text += (text.empty() ? "" : ", ") + to_text(call);
  return text;
}

}  // namespace

/// Nothing is sent while a chunk is only registered; where it is checked, its first order is checked as a
/// whole.
void OrderSender::plan() {
  if (greeting_.kind != Kind::check) return console_.activity().stage.drop();
  auto orders = console_.activity().stage.take();
  if (!orders) throw ScriptError(orders.error());
  for (const auto& order : *orders)
    console_.activity().planned +=
        (console_.activity().planned.empty() ? "" : "; ") +
        (order->order.at_step ? "at step " + std::to_string(*order->order.at_step) + ": " : "") +
        planned_text(*order);
}

std::vector<std::shared_ptr<StagedOrder>> OrderSender::take_asked() {
  auto orders = console_.activity().stage.take();
  if (!orders) {
    console_.activity().stage.drop();
    throw ScriptError(orders.error());
  }
  try {
    ask_person(*orders);
  } catch (...) {
    for (auto& order : *orders) order->dropped = true;
    throw;
  }
  return *std::move(orders);
}

void OrderSender::commit() {
  if (console_.activity().stage.in_at())
    throw ScriptError("inside at(step, function) nothing can be waited for");
  const auto orders = take_asked();
  for (const auto& order : orders) {
    try {
      send(*order);
      await(*order);
    } catch (...) {
      for (const auto& later : orders) later->dropped = !later->sent();
      throw;
    }
  }
}

void OrderSender::commit_at_last() {
  if (console_.link().interrupted()) console_.activity().stop = "interrupted";
  console_.link().clear_interrupt();
  commit();
}

/// Once for all that the chunk has ordered so far. Throws ScriptError where the answer is no.
void OrderSender::ask_person(const std::vector<std::shared_ptr<StagedOrder>>& orders) {
  if (!console_.activity().asks) return;
  std::string text;
  for (const auto& order : orders)
    for (const std::string& question :
         questions(*order, greeting_.schema, greeting_.settings, greeting_.role))
      text += (text.empty() ? "" : "\n") + question;
  if (text.empty()) return;
  const Settings before = greeting_.settings;
  confirm(text);
  // What was asked about is what is sent: not where somebody has changed it meanwhile.
  for (const auto& order : orders)
    for (Change& change : order->order.changes)
      if (!order->order.at_step && !change.expect) change.expect = before.value(change.name);
}

void OrderSender::confirm(const std::string& text) {
  if (!console_.activity().asks) return;
  const Waiting waiting(console_.activity().clock);
  if (!console_.ask("wait_answer", {{"text", text}}).value("yes", false))
    throw ScriptError("not confirmed, nothing changed", ErrorKind::refused);
}

void OrderSender::send(StagedOrder& order) {
  order.order.source = console_.activity().source.substr(0, kMaxSource);
  const Json answer = console_.ask("order", {{"order", to_json(order.order)}});
  order.ref = answer.value("ref", "");
  order.report = {{"state", "sent"}};
}

/// at() for a step that nobody could be stopped before any more.
void OrderSender::warn_if_late(const StagedOrder& order) {
  if (!order.order.at_step) return;
  const Json applied = order.report.value("applied", Json::object());
  const std::int64_t step = applied.value("step", order.report.value("step", std::int64_t{0}));
  if (step > *order.order.at_step)
    console_.talk("warning: step " + std::to_string(*order.order.at_step) +
                  " was over before all ranks could agree; it applies at step " + std::to_string(step));
}

void OrderSender::await(StagedOrder& order) {
  const bool later = order.order.at_step.has_value();
  Json request = key_of(order);
  request["until"] = later ? "committed" : "final";
  request["timeout_s"] = console_.activity().order_timeout.count();
  std::string waiting_for;
  const Waiting waiting(console_.activity().clock);
  const auto answer = console_.link().ask("wait_order", std::move(request), [&](const Json& report) {
    if (report.value("state", "") != "waiting") return;
    const std::string text = report.value("text", "");
    if (!text.empty() && text != waiting_for) console_.talk(text);
    waiting_for = text;
  });
  if (!answer) {
    if (console_.link().interrupted()) withdraw_late(order, /*interrupted=*/true);
    throw ScriptError(answer.error());
  }
  order.report = *answer;
  const std::string state = order.state();
  warn_if_late(order);
  if (state == "applied") return console_.talk(confirmation(order.order, order.report, greeting_.schema));
  if (is_final_order_state(state)) throw_for(order);
  if (state == "committed") {
    const std::string step = std::to_string(order.report.value("step", order.order.at_step.value_or(0)));
    console_.talk(planned_text(order) + ": committed for step " + step + " (" + name_of(order) +
                  ", orders() shows it)");
    return;
  }
  std::string why = order.report.value("text", "");
  if (const std::string silence = order.report.value("silent", ""); !silence.empty())
    why += (why.empty() ? "" : "; ") + silence;
  order.report["text"] = why.empty() ? waiting_for : why;
  withdraw_late(order, /*interrupted=*/false);
}

void OrderSender::withdraw_late(StagedOrder& order, bool interrupted) {
  const std::string waited_for = order.report.value("text", "");
  const bool silent = order.report.contains("silent");
  const bool untaken = silent && order.state() == "sent";  // rank 0 will find order and withdrawal together
  if (interrupted) console_.activity().stop = "interrupted";
  console_.link().clear_interrupt();
  console_.ask("withdraw", key_of(order));
  Json request = key_of(order);
  request["until"] = "final";
  request["timeout_s"] = silent ? kSilentTimeout_s : kWithdrawTimeout_s;
  order.report = console_.ask("wait_order", std::move(request));
  const std::string why = interrupted ? "interrupted"
                                      : "not agreed by all ranks within " +
                                            shortest(console_.activity().order_timeout.count()) + " s" +
                                            (waited_for.empty() ? "" : " (" + waited_for + ")");
  const ErrorKind kind = interrupted ? ErrorKind::script : ErrorKind::timed_out;
  if (order.state() == "applied") {
    console_.talk(confirmation(order.order, order.report, greeting_.schema));
    throw ScriptError(why + "; it was too late to withdraw " + name_of(order), kind);
  }
  if (order.state() == "refused") throw_for(order);
  if (is_final_order_state(order.state())) throw ScriptError(why + "; withdrawn, nothing changed", kind);
  if (untaken)
    throw ScriptError(why + "; nothing has changed, and it is withdrawn once rank 0 goes on", kind);
  throw ScriptError(why + "; " + name_of(order) + " is still open, orders() shows what becomes of it", kind);
}

void OrderSender::refresh(StagedOrder& order) {
  if (order.dropped || !order.sent()) return;
  Json request = key_of(order);
  request["until"] = "now";
  order.report = console_.ask("wait_order", std::move(request));
}

Json OrderSender::wait_call(StagedOrder& order, int call, std::optional<double> timeout_s) {
  const Waiting waiting(console_.activity().clock);
  if (!is_final_order_state(order.state())) {
    Json request = key_of(order);
    request["until"] = "final";
    if (timeout_s) request["timeout_s"] = *timeout_s;
    order.report = console_.ask("wait_order", std::move(request), [this](const Json& report) {
      if (report.value("state", "") == "waiting") console_.talk(report.value("text", ""));
    });
    if (order.state() == "applied") console_.talk(confirmation(order.order, order.report, greeting_.schema));
  }
  if (!is_final_order_state(order.state()))
    throw ScriptError(name_of(order) + " was not applied within " + shortest(*timeout_s) + " s",
                      ErrorKind::timed_out);
  if (order.state() != "applied") throw_for(order);
  if (call < 0) return order.report;
  Json request = {{"order", order.report.value("id", order.order.id)}, {"call", call}};
  if (timeout_s) request["timeout_s"] = *timeout_s;
  const Json report = console_.ask("wait_call", std::move(request));
  const std::string state = report.value("state", "");
  const std::string action = report.value("action", "the call");
  if (state == "failed") throw ScriptError(action + " failed: " + error_text(report), ErrorKind::failed);
  if (state == "cancelled") throw ScriptError(action + " was cancelled", ErrorKind::failed);
  if (state != "done")
    throw ScriptError(action + " has not ended within the time given", ErrorKind::timed_out);
  return report;
}

std::string OrderSender::cancel(StagedOrder& order, int call) {
  if (!order.sent()) {
    if (call >= 0)
      throw ScriptError("this call is only staged: it can be cancelled once its chunk has ended");
    order.dropped = true;
    return {};
  }
  refresh(order);
  if (!is_final_order_state(order.state())) {
    console_.ask("withdraw", key_of(order));
    return {};
  }
  if (order.state() != "applied") return name_of(order) + " was " + order.state() + " already";
  if (call < 0)
    return name_of(order) + " has been applied already; undo() puts back what your last order changed";
  const Json key = {{"order", order.report.value("id", order.order.id)}, {"call", call}};
  Json question = key;
  question["timeout_s"] = 0;
  const Json now = console_.ask("wait_call", std::move(question));
  if (is_final_call_state(now.value("state", "")))
    return now.value("action", "the call") + " is " + now.value("state", "") + " already";
  console_.ask("cancel", key);
  return {};
}

}  // namespace footplate::lua
