#include "console/host/orders/order_desk.h"

#include <unistd.h>

#include "protocol/words.h"

namespace footplate::host {
namespace {

constexpr double kWithdrawTimeout_s = 6;  ///< rank 0 decides every order within 5 s
constexpr std::size_t kMaxSource = 16U * 1024;

std::string needs(const std::string& name, Role needed, Role given) {
  return name + " needs the role " + std::string(to_string(needed)) + "; this session has " +
         std::string(to_string(given));
}

/// As a report of rank 0, which can't give one.
OrderReport silence_report(const std::string& silence) {
  OrderReport report;
  report.state = OrderState::waiting;
  report.text = "waiting: " + silence;
  return report;
}

/// Of an order that had its time: whom it waited for, as rank 0 last said, and rank 0 itself where that is
/// silent.
std::string late_text(const OrderReport& report, double timeout_s) {
  std::string why = report.text;
  if (!report.silent.empty()) why += (why.empty() ? "" : "; ") + report.silent;
  return "not agreed by all ranks within " + shortest(timeout_s) + " s" +
         (why.empty() ? "" : " (" + why + ")");
}

/// Rank 0 never took it: it has changed nothing, and rank 0 will read its withdrawal together with it.
bool is_untaken(const OrderReport& report) {
  return !report.silent.empty() && report.state == OrderState::sent;
}

}  // namespace

OrderDesk::OrderDesk(HostState& state) : state_(state), ref_prefix_("c" + std::to_string(::getpid()) + "-") {}

void OrderDesk::tell_silence() {
  const std::string silence = state_.view.silence(state_.now);
  if (!silence.empty() && !silence_told_) state_.waits.note_all(silence_report(silence));
  silence_told_ = !silence.empty();
}

Result<void> OrderDesk::allowed(const Client& client, const Order& order) const {
  for (const Change& change : order.changes) {
    const SettingSpec* spec = state_.view.schema().setting(change.name);
    if (spec == nullptr) return fail(ErrorKind::usage, state_.view.schema().unknown_setting(change.name));
    if (auto value = state_.view.schema().check_live(change.name, to_json(change.value)); !value)
      return tl::unexpected(value.error());
    if (client.role < spec->role)
      return fail(ErrorKind::refused, needs(change.name, spec->role, client.role));
  }
  for (const Call& call : order.calls) {
    const ActionSpec* spec = state_.view.schema().action(call.action);
    if (spec == nullptr) return fail(ErrorKind::usage, state_.view.schema().unknown_action(call.action));
    if (client.role < spec->role)
      return fail(ErrorKind::refused, needs(call.action, spec->role, client.role));
  }
  return {};
}

Result<std::string> OrderDesk::submit(const Client& client, Order order) {
  if (order.changes.empty() && order.calls.empty())
    return fail(ErrorKind::usage, "an order has to change or call something");
  if (order.at_step && *order.at_step < 0) return fail(ErrorKind::usage, "at_step can't be below 0");
  if (state_.view.result()) return fail(ErrorKind::refused, "the run has ended");
  if (auto may = allowed(client, order); !may) return tl::unexpected(may.error());
  for (Call& call : order.calls) {
    auto arguments = state_.view.schema().check_arguments(call.action, call.arguments);
    if (!arguments) return tl::unexpected(arguments.error());
    call.arguments = *std::move(arguments);
  }
  order.id = 0;
  order.session = client.session;
  order.user = client.user;
  order.source.resize(first_bytes(order.source, kMaxSource).size());
  // Rank 0 refuses it, too; here it isn't kept, or told to anybody.
  if (const std::size_t bytes = to_json(order).dump(-1, ' ', false, Json::error_handler_t::replace).size();
      bytes > kLongestOrder)
    return fail(ErrorKind::refused, "an order may have " + std::to_string(kLongestOrder) +
                                        " bytes, this one has " + std::to_string(bytes) + "; split it");
  const std::string ref = ref_prefix_ + std::to_string(++last_ref_);
  if (!state_.rank.send(to_json(ConsoleMessage(SubmitOrder{ref, order, 0}))))
    return fail(ErrorKind::failed, "the order is longer than a line of 1 MiB, or rank 0 reads no more");
  state_.book.submitted(ref, order);
  return ref;
}

void OrderDesk::withdraw(const OrderBook::Entry& entry) {
  if (entry.final()) return;
  WithdrawOrder withdraw;
  if (entry.id != 0)
    withdraw.id = entry.id;
  else
    withdraw.ref = entry.ref;
  state_.to_rank(withdraw);
}

void OrderDesk::wait(Asker asker, std::uint64_t id, const std::string& ref, Until until,
                     std::optional<double> timeout_s) {
  const OrderBook::Entry* entry = state_.book.find(id, ref);
  if (entry == nullptr)
    return asker.answer(
        fail(ErrorKind::usage, "there is no order " + (id != 0 ? std::to_string(id) : "'" + ref + "'")));
  const auto ready = [this, id, ref, until]() -> std::optional<Result<OrderReport>> {
    const OrderBook::Entry* found = state_.book.find(id, ref);
    if (found == nullptr) return OrderReport();
    const bool done =
        until == Until::now || found->final() || (until == Until::committed && found->committed());
    return done ? std::optional<Result<OrderReport>>(found->report) : std::nullopt;
  };
  const auto late = [this, id, ref]() -> Result<OrderReport> {
    const OrderBook::Entry* found = state_.book.find(id, ref);
    OrderReport report = found != nullptr ? found->report : OrderReport();
    report.timed_out = true;
    report.silent = state_.view.silence(state_.now);
    return report;
  };
  Waits::Wait wait = Waits::wait_for<OrderReport>(std::move(asker.answer), ready, late);
  wait.owner = asker.client;
  wait.order_id = entry->id;
  wait.order_ref = entry->ref;
  wait.deadline = state_.after(timeout_s);
  wait.of_script = asker.note != nullptr;
  if (wait.of_script) {
    wait.note = std::move(asker.note);
    if (entry->report.state == OrderState::waiting) wait.note(entry->report);  // it was said already
    const std::string silence = state_.view.silence(state_.now);
    if (silence_told_ && !silence.empty() && until != Until::now) wait.note(silence_report(silence));
  }
  state_.waits.add(std::move(wait), state_.now);
}

void OrderDesk::wait_call(std::uint64_t client, std::uint64_t order, std::size_t call,
                          std::optional<double> timeout_s, const AnswerOf<CallReport>& answer,
                          bool of_script) {
  if (state_.book.call(order, call) == nullptr)
    return answer(fail(ErrorKind::usage,
                       "there is no call " + std::to_string(call) + " of order " + std::to_string(order)));
  const auto report = [this, order, call] {
    const CallReport* found = state_.book.call(order, call);
    if (found != nullptr) return *found;
    CallReport forgotten;
    forgotten.order = order;
    forgotten.call = call;
    forgotten.state = CallState::failed;
    return forgotten;
  };
  const auto ready = [report]() -> std::optional<Result<CallReport>> {
    CallReport now = report();
    return is_final(now.state) ? std::optional<Result<CallReport>>(std::move(now)) : std::nullopt;
  };
  const auto late = [report]() -> Result<CallReport> {
    CallReport now = report();
    now.timed_out = true;
    return now;
  };
  Waits::Wait wait = Waits::wait_for<CallReport>(answer, ready, late);
  wait.owner = client;
  wait.of_script = of_script;
  wait.deadline = state_.after(timeout_s);
  state_.waits.add(std::move(wait), state_.now);
}

void OrderDesk::answer_with_outcome(std::uint64_t client, const std::string& ref, Until until,
                                    double timeout_s, const AnswerOf<OrderReport>& answer) {
  const auto withdrawn = [answer](const std::string& late) {
    return [answer, late](Result<OrderReport> outcome) {
      if (!outcome) return answer(std::move(outcome));
      if (outcome->timed_out)
        return answer(fail(ErrorKind::timed_out, late + "; nor is its withdrawal answered: orders tells what "
                                                        "becomes of it"));
      if (outcome->state != OrderState::withdrawn) return answer(std::move(outcome));
      answer(fail(ErrorKind::timed_out, late + "; withdrawn, nothing changed"));
    };
  };
  const auto decided = [this, client, ref, answer, withdrawn, timeout_s](Result<OrderReport> report) {
    if (!report || !report->timed_out || report->state == OrderState::committed)
      return answer(std::move(report));
    if (const OrderBook::Entry* entry = state_.book.find(0, ref)) withdraw(*entry);
    const std::string late = late_text(*report, timeout_s);
    if (is_untaken(*report))
      return answer(fail(ErrorKind::timed_out,
                         late + "; nothing has changed, and it is withdrawn once rank 0 goes on"));
    wait({client, withdrawn(late), nullptr}, 0, ref, Until::final, kWithdrawTimeout_s);
  };
  wait({client, decided, nullptr}, 0, ref, until, timeout_s);
}

}  // namespace footplate::host
