#include "runtime/orders/coordinator.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "runtime/watch/messages.h"

namespace footplate {
namespace {

/// Largest order in bytes of JSON; with its report it has to fit a line of the protocol.
constexpr std::size_t kMostOrderBytes = 256 * 1024;
/// Orders of a replay that a status lists: it is sent twice a second.
constexpr std::size_t kMostTakenOverShown = 100;

std::size_t size_of(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace).size();
}

}  // namespace

Coordinator::Coordinator(Parts parts)
    : parts_(std::move(parts)),
      hashes_(parts_.world_size),
      next_id_(parts_.first_order_id),
      agreed_(parts_.world_size, parts_.times),
      reports_(parts_.report, parts_.times.reports),
      end_(parts_.world_size) {}

// --- what comes from outside ---

void Coordinator::submit(const Json& ref, const Json& json, Clock::time_point now) {
  OrderEntry entry;
  entry.ref = ref;
  if (auto error = refusal(json, entry.order)) {
    Json report = {{"state", "refused"}, {"error", error->message}, {"ref", ref}};
    parts_.report("order", std::move(report));
    return;
  }
  entry.order.id = next_id_++;
  enqueue(std::move(entry), /*in_front=*/false, now);
}

std::optional<Error> Coordinator::refusal(const Json& json, Order& order) const {
  const auto refuse = [](std::string text) { return Error{ErrorKind::refused, std::move(text)}; };
  if (ended_) return refuse("the run is ending; it takes no more orders");
  const std::size_t bytes = size_of(json);
  if (bytes > kMostOrderBytes)
    return refuse(
        fmt::format("an order may have {} bytes, this one has {}; split it", kMostOrderBytes, bytes));
  if (queue_.size() >= parts_.times.queue)
    return refuse(fmt::format(
        "{} orders wait for their turn already; wait for one to be applied, then repeat", queue_.size()));
  if (const std::size_t waiting = agreed_.count_given(); waiting >= parts_.times.committed)
    return refuse(fmt::format("{} orders wait for their step already; withdraw one, or wait", waiting));
  auto parsed = order_from_json(json).and_then(
      [&](Order given) { return checked_order(parts_.schema, std::move(given)); });
  if (!parsed) return parsed.error();
  order = *std::move(parsed);
  if (order.session != kOwnSession) return std::nullopt;
  return refuse(fmt::format("session '{}' is the run's own", kOwnSession));
}

void Coordinator::enqueue(OrderEntry entry, bool in_front, Clock::time_point now) {
  parts_.report("order", report_of(entry, "accepted"));
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

void Coordinator::withdraw(const Json& request, Clock::time_point now) {
  const auto meant = [&](const OrderEntry& entry) {
    if (entry.withdraws != 0 || entry.order.session == kOwnSession) return false;  // a stop stays
    return request.contains("id") ? request["id"] == entry.order.id
                                  : request.contains("ref") && request["ref"] == entry.ref;
  };
  if (const auto found = std::find_if(queue_.begin(), queue_.end(), meant); found != queue_.end()) {
    const OrderEntry entry = std::move(*found);
    queue_.erase(found);
    reports_.give_final(report_of(entry, "withdrawn"), entry);
    return;
  }
  if (open_ && meant(open_->entry())) {
    if (suspended_) {  // opened again by go_on(): as if it waited
      queue_.push_front(open_->entry());
      open_.reset();
      withdraw(request, now);
      return;
    }
    close_open("withdrawn", "", now);
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
  send_all({{"t", message::kCancel}, {"order", order}, {"call", call}});
}

void Coordinator::cancel_evaluation(std::int64_t step) {
  send_all({{"t", message::kCancel}, {"evaluation", step}});
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

void Coordinator::handle(int source, const Json& message, Clock::time_point now) {
  const std::string type = message.at("t");
  if (type == message::kCall) on_call(message);
  if (!suspended_) {  // what counts is said again after it
    if (type == message::kPrepared) on_prepared(source, message, now);
    if (type == message::kFenced) on_fenced(source, message, now);
    if (type == message::kApplied)
      if (const auto agreed = agreed_.confirm(source, message, now)) conclude(*agreed);
    if (type == message::kEnd) {
      end_.add(source, message.at("step"), message.at("commits"));
      finish_if_all_at_end();
    }
    if (type == message::kHash) on_hash(source, message);
  }
  if (type == message::kBeat)
    parts_.status.beat(source, message, now);
  else
    parts_.status.heard(source, now);
  if (type == message::kStop) stop(message.at("reason"), message.at("resumable"), now);
  if (type == message::kBye) parts_.status.goodbye(source);
}

// --- one order: prepare, fence, commit ---

void Coordinator::open_next(Clock::time_point now) {
  if (open_ || queue_.empty() || ended_ || suspended_) return;
  open_.emplace(std::move(queue_.front()), next_ticket_++, parts_.world_size, now, parts_.times);
  queue_.pop_front();
  send_all(open_->question());
}

void Coordinator::on_prepared(int source, const Json& message, Clock::time_point now) {
  if (!open_ || open_->is_fencing() || message.at("ticket") != open_->ticket()) return;
  if (message.contains("error")) {
    close_open("refused", message["error"], now);
    return;
  }
  if (!open_->add_prepared(source)) return;
  open_->start_fencing();
  send_all({{"t", message::kFence}, {"ticket", open_->ticket()}});
}

void Coordinator::on_fenced(int source, const Json& message, Clock::time_point now) {
  if (!open_ || !open_->is_fencing() || message.at("ticket") != open_->ticket()) return;
  if (!open_->add_fence(source, message.at("step"))) return;
  agree(now);
  open_next(now);
}

void Coordinator::agree(Clock::time_point now) {
  const std::int64_t first = open_->first_step(agreed_.floor());
  if (open_->entry().withdraws != 0) return agree_withdrawal(first);
  const auto target = open_->entry().order.at_step;
  const bool targeted = target && *target >= first;
  const std::int64_t step = targeted ? *target : first;
  send_all({{"t", message::kCommit}, {"ticket", open_->ticket()}, {"step", step}, {"targeted", targeted}});
  end_.count_commit();

  const OrderEntry entry = open_->entry();
  open_.reset();
  agreed_.add(entry, step, targeted, now);
  Json report = report_of(entry, "committed");
  report["step"] = step;
  parts_.report("order", std::move(report));
}

/// Nobody has begun `step`: an order beyond it can be taken back on all ranks.
void Coordinator::agree_withdrawal(std::int64_t step) {
  const std::uint64_t id = open_->entry().withdraws;
  const std::uint64_t ticket = open_->ticket();
  open_.reset();
  const AgreedOrder* agreed = agreed_.find(id);
  if (agreed == nullptr || agreed->step <= step) {
    send_all({{"t", message::kAbort}, {"ticket", ticket}});
    return;
  }
  send_all({{"t", message::kCommit}, {"ticket", ticket}, {"withdraws", id}});
  end_.count_commit();
  const OrderEntry entry = agreed_.take(id);
  reports_.give_final(report_of(entry, "withdrawn"), entry);
}

/// Ends the open order without a commit: nothing changes anywhere.
void Coordinator::close_open(const std::string& state, const std::string& error, Clock::time_point now) {
  send_all({{"t", message::kAbort}, {"ticket", open_->ticket()}});
  const OrderEntry entry = open_->entry();
  open_.reset();
  if (entry.withdraws == 0) {
    Json report = report_of(entry, state.c_str());
    if (!error.empty()) report["error"] = error;
    reports_.give_final(std::move(report), entry);
    stop_.aborted(entry.order.id, now + parts_.times.stop_retry);
  } else if (const AgreedOrder* target = agreed_.find(entry.withdraws)) {
    Json report = report_of(target->entry, "waiting");
    report["text"] = "not withdrawn: " + error;
    parts_.report("order", std::move(report));
  }
  open_next(now);
}

// --- after the commit ---

void Coordinator::conclude(const AgreedOrder& agreed) {
  if (const std::string error = agreed.confirmations[0]->error; !error.empty()) {
    agreed_.end_calls(agreed.entry.order);
    Json report = report_of(agreed.entry, "refused");
    report["error"] = fmt::format("at step {}: {}", agreed.step, error);
    reports_.give_final(std::move(report), agreed.entry);
    return;
  }
  if (Json changed = agreed.changed_settings(parts_.schema); !changed.empty())
    parts_.report("settings", std::move(changed));
  Json report = agreed.applied_report();
  // Steps and digests have to be the same everywhere; otherwise footplate itself is broken: say it loudly.
  if (const std::string text = report.value("error", ""); !text.empty()) {
    parts_.status.note("disagree", text);
    parts_.report("warn", {{"kind", "disagree"}, {"ranks", agreed.odd_ranks()}, {"text", text}});
  }
  reports_.give_final(std::move(report), agreed.entry);
}

void Coordinator::on_call(const Json& message) {
  Json report = message;
  report.erase("t");
  const std::string state = message.at("state");
  if (state != "running") agreed_.end_call(message.at("order"), message.at("call"));
  if (state == "done" && message.at("action") == "run.pause") parts_.report("run", {{"state", "paused"}});
  if (state == "done" && message.at("action") == "run.resume") parts_.report("run", {{"state", "running"}});
  parts_.report("call", std::move(report));
}

void Coordinator::on_hash(int source, const Json& message) {
  const auto mismatch = hashes_.add(source, message.at("step"), message.at("hash"));
  if (!mismatch) return;
  parts_.status.note("state_hash", mismatch->text);
  parts_.report(
      "warn",
      {{"kind", "state_hash"}, {"step", mismatch->step}, {"ranks", mismatch->odd}, {"text", mismatch->text}});
}

void Coordinator::finish_if_all_at_end() {
  if (ended_ || open_ || suspended_ || !queue_.empty() || !end_.all_are_there()) return;
  ended_ = true;
  send_all({{"t", message::kFinish}});
  for (const AgreedOrder& agreed : agreed_.take_all()) {
    Json report = report_of(agreed.entry, "withdrawn");
    report["error"] = fmt::format("the run ended at step {}, before step {}", end_.step(), agreed.step);
    reports_.give_final(std::move(report), agreed.entry);
  }
  parts_.report("run", {{"state", "ending"}, {"step", end_.step()}});
}

// --- time ---

void Coordinator::tick(Clock::time_point now) {
  for (Json& change : parts_.status.tick(now)) parts_.report("rank", std::move(change));
  if (suspended_) return;
  if (open_ && now >= open_->deadline()) {
    const double limit_s = std::chrono::duration<double>(parts_.times.outcome).count();
    close_open("aborted",
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
    Json report = report_of(open_->entry(), "waiting");
    report["text"] = "waiting for " + parts_.status.whom(open_->unanswered(), now);
    parts_.report("order", std::move(report));
  }
  for (const AgreedOrder* agreed : agreed_.take_impatient(now)) {
    Json report = report_of(agreed->entry, "waiting");
    report["step"] = agreed->step;
    report["text"] = "waiting for " + parts_.status.whom(agreed->unconfirmed(), now);
    parts_.report("order", std::move(report));
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

Json Coordinator::open_orders(std::size_t order_bytes) const {
  Json reports = Json::array();
  const auto add = [&](const OrderEntry& entry, const char* state) {
    if (entry.withdraws != 0) return;
    reports.push_back(report_of(entry, state));
    if (order_bytes == 0) return;
    Json order = to_json(entry.order);
    const std::size_t bytes = size_of(order);
    if (bytes > order_bytes) order = {{"session", entry.order.session}, {"user", entry.order.user}};
    order_bytes -= std::min(order_bytes - 1, bytes);
    reports.back()["order"] = std::move(order);
  };
  std::size_t taken_over = 0;
  for (const auto& [id, agreed] : agreed_.all()) {
    if (agreed.taken_over && ++taken_over > kMostTakenOverShown) continue;
    add(agreed.entry, "committed");
    reports.back()["step"] = agreed.step;
  }
  if (open_) add(open_->entry(), "accepted");
  for (const auto& entry : queue_) add(entry, "accepted");
  return reports;
}

void Coordinator::send_all(const Json& message) {
  for (int rank = 0; rank < parts_.world_size; ++rank) parts_.send(rank, message);
}

}  // namespace footplate
