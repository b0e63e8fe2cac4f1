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
request::OrderKey key_of(const StagedOrder& order) {
  if (order.number() != 0) return {order.number(), {}};
  return {0, order.ref};
}

std::string name_of(const StagedOrder& order) {
  return order.number() == 0 ? "the order" : "order " + std::to_string(order.number());
}

/// Of a call, for messages.
std::string name_of(const CallReport& call) {
  return call.action.empty() ? "the call" : call.action;
}

/// Where an order ended in any other way than applied.
[[noreturn]] void throw_for(const StagedOrder& order) {
  const auto state = order.state();
  if (state == OrderState::aborted)
    throw ScriptError(name_of(order) + " was aborted, nothing changed: " + order.report.error,
                      ErrorKind::timed_out);
  if (state == OrderState::withdrawn)
    throw ScriptError(name_of(order) + " was withdrawn, nothing changed", ErrorKind::refused);
  throw ScriptError(name_of(order) + " was refused, nothing changed: " + order.report.error,
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
  if (greeting_.kind != SessionKind::check) return console_.activity().stage.drop();
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
    for (const auto& order : *orders) refuse_steps_behind(*order);
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

/// A run that is past the steps it is given ends at once, and would seem to be done. Throws ScriptError.
void OrderSender::refuse_steps_behind(const StagedOrder& order) {
  constexpr const char* kSteps = "train.steps";
  // A script knows what it does, and the run may have gone on by a step meanwhile.
  const bool of_person =
      greeting_.kind == SessionKind::session && console_.activity().mode == Activity::Mode::chunk;
  const bool goes_back = std::any_of(order.order.calls.begin(), order.order.calls.end(),
                                     [](const Call& call) { return call.action == "ckpt.load"; });
  if (!of_person || goes_back) return;
  for (const Change& change : order.order.changes) {
    const auto* steps = change.name == kSteps ? std::get_if<std::int64_t>(&change.value) : nullptr;
    if (steps == nullptr || order.forced.contains(kSteps)) continue;
    const std::int64_t step =
        std::max(console_.look(request::Status{}).step, order.order.at_step.value_or(0));
    if (*steps < step)
      throw ScriptError("train.steps = " + std::to_string(*steps) + " is behind step " +
                            std::to_string(step) +
                            ": the run would end at once. run.stop() ends it; train.set{ steps = " +
                            std::to_string(*steps) + ", force = true } does it all the same",
                        ErrorKind::refused);
  }
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
  if (!console_.ask(request::AskPerson{text}).yes)
    throw ScriptError("not confirmed, nothing changed", ErrorKind::refused);
}

void OrderSender::send(StagedOrder& order) {
  order.order.source = console_.activity().source.substr(0, kMaxSource);
  order.ref = console_.ask(request::SendOrder{order.order}).ref;
  order.report = OrderReport{};
}

/// at() for a step that nobody could be stopped before any more.
void OrderSender::warn_if_late(const StagedOrder& order) {
  if (!order.order.at_step) return;
  const std::int64_t step = order.report.applied ? order.report.applied->step : order.report.step.value_or(0);
  if (step > *order.order.at_step)
    console_.talk("warning: step " + std::to_string(*order.order.at_step) +
                  " was over before all ranks could agree; it applies at step " + std::to_string(step));
}

void OrderSender::tell_applied(const StagedOrder& order) {
  console_.talk((order.title.empty() ? "" : order.title + ": ") +
                confirmation(order.order, order.report, greeting_.schema));
}

void OrderSender::await(StagedOrder& order) {
  const bool later = order.order.at_step.has_value();
  const request::WaitOrder request{key_of(order), later ? request::Until::committed : request::Until::outcome,
                                   console_.activity().order_timeout.count()};
  std::string waiting_for;
  const Waiting waiting(console_.activity().clock);
  const auto answer = console_.try_ask(request, [&](const OrderReport& report) {
    if (report.state != OrderState::waiting) return;
    if (!report.text.empty() && report.text != waiting_for) console_.talk(report.text);
    waiting_for = report.text;
  });
  if (!answer) {
    if (console_.link().interrupted()) withdraw_late(order, /*interrupted=*/true);
    throw ScriptError(answer.error());
  }
  order.report = *answer;
  const auto state = order.state();
  warn_if_late(order);
  if (state == OrderState::applied) return tell_applied(order);
  if (order.is_final()) throw_for(order);
  if (state == OrderState::committed) {
    const std::int64_t step = order.report.step.value_or(order.order.at_step.value_or(0));
    console_.talk(planned_text(order) + ": committed for step " + std::to_string(step) + " (" +
                  name_of(order) + ", orders() shows it)");
    return;
  }
  std::string& why = order.report.text;
  if (const std::string& silence = order.report.silent; !silence.empty())
    why += (why.empty() ? "" : "; ") + silence;
  if (why.empty()) why = waiting_for;
  withdraw_late(order, /*interrupted=*/false);
}

void OrderSender::withdraw_late(StagedOrder& order, bool interrupted) {
  const std::string waited_for = order.report.text;
  const bool silent = !order.report.silent.empty();
  // Rank 0 will find order and withdrawal together.
  const bool untaken = silent && order.state() == OrderState::sent;
  if (interrupted) console_.activity().stop = "interrupted";
  console_.link().clear_interrupt();
  console_.ask(request::Withdraw{key_of(order)});
  order.report = console_.ask(request::WaitOrder{key_of(order), request::Until::outcome,
                                                 silent ? kSilentTimeout_s : kWithdrawTimeout_s});
  const std::string why = interrupted ? "interrupted"
                                      : "not agreed by all ranks within " +
                                            shortest(console_.activity().order_timeout.count()) + " s" +
                                            (waited_for.empty() ? "" : " (" + waited_for + ")");
  const ErrorKind kind = interrupted ? ErrorKind::script : ErrorKind::timed_out;
  if (order.state() == OrderState::applied) {
    tell_applied(order);
    throw ScriptError(why + "; it was too late to withdraw " + name_of(order), kind);
  }
  if (order.state() == OrderState::refused) throw_for(order);
  if (order.is_final()) throw ScriptError(why + "; withdrawn, nothing changed", kind);
  if (untaken)
    throw ScriptError(why + "; nothing has changed, and it is withdrawn once rank 0 goes on", kind);
  throw ScriptError(why + "; " + name_of(order) + " is still open, orders() shows what becomes of it", kind);
}

void OrderSender::refresh(StagedOrder& order) {
  if (order.dropped || !order.sent()) return;
  order.report = console_.ask(request::WaitOrder{key_of(order), request::Until::now, std::nullopt});
}

CallReport OrderSender::ask_call(const StagedOrder& order, int call, std::optional<double> timeout_s) {
  return console_.ask(request::WaitCall{order.number(), call, timeout_s});
}

void OrderSender::wait_applied(StagedOrder& order, std::optional<double> timeout_s) {
  const Waiting waiting(console_.activity().clock);
  if (!order.is_final()) {
    order.report = console_.ask(request::WaitOrder{key_of(order), request::Until::outcome, timeout_s},
                                [this](const OrderReport& report) {
                                  if (report.state == OrderState::waiting) console_.talk(report.text);
                                });
    if (order.state() == OrderState::applied) tell_applied(order);
  }
  if (!order.is_final())
    throw ScriptError(name_of(order) + " was not applied within " + shortest(timeout_s.value_or(0)) + " s",
                      ErrorKind::timed_out);
  if (order.state() != OrderState::applied) throw_for(order);
}

Json OrderSender::wait_call(StagedOrder& order, int call, std::optional<double> timeout_s) {
  wait_applied(order, timeout_s);
  const Waiting waiting(console_.activity().clock);
  CallReport report = ask_call(order, call, timeout_s);
  if (report.state == CallState::failed)
    throw ScriptError(name_of(report) + " failed: " + report.error, ErrorKind::failed);
  if (report.state == CallState::cancelled)
    throw ScriptError(name_of(report) + " was cancelled", ErrorKind::failed);
  if (report.state != CallState::done)
    throw ScriptError(name_of(report) + " has not ended within the time given", ErrorKind::timed_out);
  return std::move(report.result);
}

std::optional<CallReport> OrderSender::call_now(StagedOrder& order, int call) {
  refresh(order);
  if (call < 0 || order.state() != OrderState::applied) return std::nullopt;
  return ask_call(order, call, 0);
}

std::string OrderSender::cancel(StagedOrder& order, int call) {
  if (!order.sent()) {
    if (call >= 0)
      throw ScriptError("this call is only staged: it can be cancelled once its chunk has ended");
    order.dropped = true;
    return {};
  }
  refresh(order);
  if (!order.is_final()) {
    console_.ask(request::Withdraw{key_of(order)});
    return {};
  }
  if (order.state() != OrderState::applied) return name_of(order) + " was " + order.state_word() + " already";
  if (call < 0)
    return name_of(order) + " has been applied already; undo() puts back what your last order changed";
  const CallReport now = ask_call(order, call, 0);
  if (is_final(now.state)) return name_of(now) + " is " + std::string(to_string(now.state)) + " already";
  console_.ask(request::CancelCall{order.number(), call});
  return {};
}

}  // namespace footplate::lua
