#include "runtime/orders/coordinator.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "protocol/overloaded.h"
#include "runtime/schema/actions.h"
#include "runtime/watch/event_parts.h"

namespace footplate {
namespace {

/// Orders of a replay that a status lists: it is sent twice a second.
constexpr std::size_t kMostTakenOverShown = 100;

std::size_t size_of(const Order& order) {
  return to_json(order).dump(-1, ' ', false, Json::error_handler_t::replace).size();
}

}  // namespace

Coordinator::Coordinator(Parts parts)
    : parts_(std::move(parts)),
      hashes_(parts_.world_size),
      next_id_(parts_.first_order_id),
      agreed_(parts_.world_size, parts_.times),
      reports_([this](OrderReport report) { parts_.report(std::move(report)); }, parts_.times.reports),
      end_(parts_.world_size) {}

// --- what comes from outside ---

void Coordinator::submit(SubmitOrder submitted, Clock::time_point now) {
  OrderEntry entry;
  entry.ref = submitted.ref;
  if (auto error = refusal(submitted)) {
    OrderReport report = report_of(entry, OrderState::refused);
    report.error = error->message;
    parts_.report(std::move(report));
    return;
  }
  entry.order = *std::move(submitted.order);
  entry.order.id = next_id_++;
  enqueue(std::move(entry), /*in_front=*/false, now);
}

/// Why it can't be taken; nothing: it can, and its values have their types now.
std::optional<Error> Coordinator::refusal(SubmitOrder& submitted) const {
  const auto refuse = [](std::string text) { return Error{ErrorKind::refused, std::move(text)}; };
  if (ended_) return refuse("the run is ending; it takes no more orders");
  if (submitted.bytes > kLongestOrder)
    return refuse(
        fmt::format("an order may have {} bytes, this one has {}; split it", kLongestOrder, submitted.bytes));
  if (queue_.size() >= parts_.times.queue)
    return refuse(fmt::format(
        "{} orders wait for their turn already; wait for one to be applied, then repeat", queue_.size()));
  if (const std::size_t waiting = agreed_.count_given(); waiting >= parts_.times.committed)
    return refuse(fmt::format("{} orders wait for their step already; withdraw one, or wait", waiting));
  submitted.order = std::move(submitted.order).and_then([&](Order given) {
    return checked_order(parts_.schema, std::move(given));
  });
  if (!submitted.order) return submitted.order.error();
  if (submitted.order->session != kOwnSession) return std::nullopt;
  return refuse(fmt::format("session '{}' is the run's own", kOwnSession));
}

void Coordinator::enqueue(OrderEntry entry, bool in_front, Clock::time_point now) {
  parts_.report(report_of(entry, OrderState::accepted));
  queue_.insert(in_front ? queue_.begin() : queue_.end(), std::move(entry));
  open_next(now);
}

std::uint64_t Coordinator::submit_own(Order order, Clock::time_point now) {
  if (ended_ || stop_.is_requested() || queue_.size() >= parts_.times.queue) return 0;
  order.session = order.user = kOwnSession;
  const std::uint64_t id = order.id = next_id_++;
  enqueue({std::move(order)}, /*in_front=*/false, now);
  return id;
}

void Coordinator::stop(const std::string& reason, bool resumable, Clock::time_point now, bool save) {
  if (stop_.request(reason, resumable, save, now)) give_stop(now);
}

void Coordinator::give_stop(Clock::time_point now) {
  if (ended_ || suspended_ || !stop_.is_due(now)) return;
  enqueue({stop_.order(next_id_++)}, /*in_front=*/true, now);
}

void Coordinator::withdraw(const WithdrawOrder& request, Clock::time_point now) {
  const auto meant = [&](const OrderEntry& entry) {
    if (entry.withdraws != 0 || entry.order.session == kOwnSession) return false;  // a stop stays
    return request.id ? *request.id == entry.order.id : !request.ref.empty() && request.ref == entry.ref;
  };
  if (const auto found = std::find_if(queue_.begin(), queue_.end(), meant); found != queue_.end()) {
    const OrderEntry entry = std::move(*found);
    queue_.erase(found);
    reports_.give_final(report_of(entry, OrderState::withdrawn), entry);
    return;
  }
  if (open_ && meant(open_->entry())) {
    if (suspended_) {  // opened again by go_on(): as if it waited
      queue_.push_front(open_->entry());
      open_.reset();
      withdraw(request, now);
      return;
    }
    close_open(OrderState::withdrawn, "", now);
    return;
  }
  for (const auto& [id, agreed] : agreed_.all())
    if (meant(agreed.entry)) return withdraw_agreed(agreed, now);
}

/// By the same protocol as an order: the fences tell whether its step can still be reached by nobody.
void Coordinator::withdraw_agreed(const AgreedOrder& agreed, Clock::time_point now) {
  if (!agreed.targeted) return;  // it applies at the next step; its report is on the way
  const std::uint64_t id = agreed.entry.order.id;
  const auto same = [&](const OrderEntry& entry) { return entry.withdraws == id; };
  if (std::any_of(queue_.begin(), queue_.end(), same) || (open_ && same(open_->entry()))) return;
  OrderEntry entry;
  entry.withdraws = id;
  queue_.push_front(std::move(entry));
  open_next(now);
}

void Coordinator::cancel(std::uint64_t order, std::size_t call) {
  if (!agreed_.has_call(order, call)) return;
  send_all(message::Cancel{order, call, std::nullopt});
}

void Coordinator::cancel_evaluation(std::int64_t step) {
  send_all(message::Cancel{0, 0, step});
}

void Coordinator::take_over(const Committed& committed) {
  agreed_.take_over(committed);
  end_.count_commit();
}

void Coordinator::inherit(const Committed& committed) {
  agreed_.inherit(committed);
  next_id_ = std::max(next_id_, committed.order.id + 1);
}

void Coordinator::go_on(int world_size, std::uint64_t commits, Clock::time_point now) {
  parts_.world_size = world_size;
  hashes_ = StateHashes(world_size);
  end_.go_on(world_size, commits);
  agreed_.go_on(world_size, now);
  if (open_) {
    queue_.push_front(open_->entry());
    open_.reset();
  }
  suspended_ = false;
  open_next(now);
}

void Coordinator::handle(int source, const message::ToRankZero& message, Clock::time_point now) {
  if (const auto* beat = std::get_if<message::Beat>(&message))
    parts_.status.beat(source, *beat, now);
  else
    parts_.status.heard(source, now);
  std::visit(Overloaded{[&](const CallReport& call) { on_call(call); },
                        [&](const message::Stop& asked) { stop(asked.reason, asked.resumable, now); },
                        [&](const message::Bye&) { parts_.status.goodbye(source); }, [](const auto&) {}},
             message);
  if (suspended_) return;  // what counts is said again after it
  std::visit(Overloaded{[&](const message::Prepared& prepared) { on_prepared(source, prepared, now); },
                        [&](const message::Fenced& fenced) { on_fenced(source, fenced, now); },
                        [&](const message::Applied& applied) {
                          if (const auto agreed = agreed_.confirm(source, applied, now)) conclude(*agreed);
                        },
                        [&](const message::End& end) {
                          end_.add(source, end.step, end.commits);
                          finish_if_all_at_end();
                        },
                        [&](const message::Hash& hash) { on_hash(source, hash); }, [](const auto&) {}},
             message);
}

// --- one order: prepare, fence, commit ---

void Coordinator::open_next(Clock::time_point now) {
  if (open_ || queue_.empty() || ended_ || suspended_) return;
  open_.emplace(std::move(queue_.front()), next_ticket_++, parts_.world_size, now, parts_.times);
  queue_.pop_front();
  send_all(open_->question());
}

void Coordinator::on_prepared(int source, const message::Prepared& prepared, Clock::time_point now) {
  if (!open_ || open_->is_fencing() || prepared.ticket != open_->ticket()) return;
  if (!prepared.error.empty()) {
    close_open(OrderState::refused, prepared.error, now);
    return;
  }
  if (!open_->add_prepared(source)) return;
  open_->start_fencing();
  send_all(message::Fence{open_->ticket()});
}

void Coordinator::on_fenced(int source, const message::Fenced& fenced, Clock::time_point now) {
  if (!open_ || !open_->is_fencing() || fenced.ticket != open_->ticket()) return;
  if (!open_->add_fence(source, fenced.step)) return;
  agree(now);
  open_next(now);
}

void Coordinator::agree(Clock::time_point now) {
  const std::int64_t first = open_->first_step(agreed_.floor());
  if (open_->entry().withdraws != 0) return agree_withdrawal(first);
  const auto target = open_->entry().order.at_step;
  const bool targeted = target && *target >= first;
  const std::int64_t step = targeted ? *target : first;
  send_all(message::Commit{open_->ticket(), step, targeted, 0});
  end_.count_commit();

  const OrderEntry entry = open_->entry();
  open_.reset();
  agreed_.add(entry, step, targeted, now);
  OrderReport report = report_of(entry, OrderState::committed);
  report.step = step;
  parts_.report(std::move(report));
}

/// Nobody has begun `step`: an order beyond it can be taken back on all ranks.
void Coordinator::agree_withdrawal(std::int64_t step) {
  const std::uint64_t id = open_->entry().withdraws;
  const std::uint64_t ticket = open_->ticket();
  open_.reset();
  const AgreedOrder* agreed = agreed_.find(id);
  if (agreed == nullptr || agreed->step <= step) {
    send_all(message::Abort{ticket});
    return;
  }
  send_all(message::Commit{ticket, 0, false, id});
  end_.count_commit();
  const OrderEntry entry = agreed_.take(id);
  agreed_.end_calls(entry.order);
  reports_.give_final(report_of(entry, OrderState::withdrawn), entry);
}

/// Ends the open order without a commit: nothing changes anywhere.
void Coordinator::close_open(OrderState state, const std::string& error, Clock::time_point now) {
  send_all(message::Abort{open_->ticket()});
  const OrderEntry entry = open_->entry();
  open_.reset();
  if (entry.withdraws == 0) {
    OrderReport report = report_of(entry, state);
    report.error = error;
    reports_.give_final(std::move(report), entry);
    stop_.aborted(entry.order.id, now + parts_.times.stop_retry);
  } else if (const AgreedOrder* target = agreed_.find(entry.withdraws)) {
    OrderReport report = report_of(target->entry, OrderState::waiting);
    report.text = "not withdrawn: " + error;
    parts_.report(std::move(report));
  }
  open_next(now);
}

// --- after the commit ---

void Coordinator::conclude(const AgreedOrder& agreed) {
  if (const std::string error = agreed.confirmations.of(0).error; !error.empty()) {
    agreed_.end_calls(agreed.entry.order);
    OrderReport report = report_of(agreed.entry, OrderState::refused);
    report.error = fmt::format("at step {}: {}", agreed.step, error);
    reports_.give_final(std::move(report), agreed.entry);
    return;
  }
  if (SettingsUpdate changed = agreed.changed_settings(parts_.schema); !changed.settings.empty())
    parts_.report(std::move(changed));
  OrderReport report = agreed.applied_report();
  // Steps and digests have to be the same everywhere; otherwise footplate itself is broken: say it loudly.
  if (!report.error.empty()) {
    parts_.status.note("disagree", report.error);
    Warning warning = warning_of(WarningKind::disagree, report.error);
    warning.ranks = agreed.odd_ranks();
    parts_.report(std::move(warning));
  }
  reports_.give_final(std::move(report), agreed.entry);
}

void Coordinator::on_call(const CallReport& report) {
  if (is_final(report.state)) agreed_.end_call(report.order, report.call);
  if (report.state == CallState::done && report.action == kPause) parts_.report(run_change(RunState::paused));
  if (report.state == CallState::done && report.action == kResume)
    parts_.report(run_change(RunState::running));
  parts_.report(report);
}

void Coordinator::on_hash(int source, const message::Hash& hash) {
  const auto mismatch = hashes_.add(source, hash.of);
  if (!mismatch) return;
  Warning warning = warning_at(WarningKind::state_hash, mismatch->step, mismatch->text);
  warning.ranks = mismatch->odd;
  warning.tensors = mismatch->tensors;
  parts_.report(std::move(warning));
}

void Coordinator::finish_if_all_at_end() {
  if (ended_ || open_ || suspended_ || !queue_.empty() || !end_.all_are_there()) return;
  ended_ = true;
  send_all(message::Finish{});
  for (const AgreedOrder& agreed : agreed_.take_all()) {
    OrderReport report = report_of(agreed.entry, OrderState::withdrawn);
    report.error = fmt::format("the run ended at step {}, before step {}", end_.step(), agreed.step);
    reports_.give_final(std::move(report), agreed.entry);
  }
  parts_.report(run_change(RunState::ending, end_.step()));
}

// --- time ---

void Coordinator::tick(Clock::time_point now) {
  for (RankChange& change : parts_.status.tick(now)) parts_.report(std::move(change));
  if (suspended_) return;
  if (open_ && now >= open_->deadline()) {
    const double limit_s = std::chrono::duration<double>(parts_.times.outcome).count();
    close_open(OrderState::aborted,
               fmt::format("no outcome within {:.3g} s: waited for {}; nothing changed on any rank", limit_s,
                           parts_.status.whom(open_->unanswered(), now)),
               now);
  }
  report_waiting(now);
  give_stop(now);
  open_next(now);
  finish_if_all_at_end();
}

void Coordinator::report_waiting(Clock::time_point now) {
  if (open_ && open_->entry().withdraws == 0 && open_->patience().is_over(now)) {
    OrderReport report = report_of(open_->entry(), OrderState::waiting);
    report.text = "waiting for " + parts_.status.whom(open_->unanswered(), now);
    parts_.report(std::move(report));
  }
  for (const AgreedOrder* agreed : agreed_.take_impatient(now)) {
    OrderReport report = report_of(agreed->entry, OrderState::waiting);
    report.step = agreed->step;
    report.text = "waiting for " + parts_.status.whom(agreed->unconfirmed(), now);
    parts_.report(std::move(report));
  }
}

Coordinator::Clock::time_point Coordinator::next_tick() const {
  auto next = parts_.status.next_tick();
  if (suspended_) return next;
  if (open_) next = std::min(next, open_->deadline());
  if (open_ && open_->entry().withdraws == 0) next = std::min(next, open_->patience().next());
  next = std::min(next, agreed_.next_impatient());
  if (!ended_) next = std::min(next, stop_.next_try());
  return next;
}

// --- reports ---

std::vector<OrderReport> Coordinator::open_orders(std::size_t order_bytes) const {
  std::vector<OrderReport> reports;
  const auto add = [&](const OrderEntry& entry, OrderState state) {
    if (entry.withdraws != 0) return;
    reports.push_back(report_of(entry, state));
    if (order_bytes == 0) return;
    const std::size_t bytes = size_of(entry.order);
    if (bytes > order_bytes) {
      reports.back().order.emplace();
      reports.back().order->id = entry.order.id;
      reports.back().order->session = entry.order.session;
      reports.back().order->user = entry.order.user;
    } else {
      reports.back().order = entry.order;
    }
    order_bytes -= std::min(order_bytes - 1, bytes);
  };
  std::size_t taken_over = 0;
  for (const auto& [id, agreed] : agreed_.all()) {
    if (agreed.taken_over && ++taken_over > kMostTakenOverShown) continue;
    add(agreed.entry, OrderState::committed);
    reports.back().step = agreed.step;
  }
  if (open_) add(open_->entry(), OrderState::accepted);
  for (const auto& entry : queue_) add(entry, OrderState::accepted);
  return reports;
}

}  // namespace footplate
