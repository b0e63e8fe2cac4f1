#include "runtime/orders/coordinator.h"

#include <fmt/format.h>

#include <algorithm>

#include "runtime/orders/forecast.h"
#include "runtime/watch/messages.h"

namespace footplate {
namespace {

/// Largest order in bytes of JSON; with its report it has to fit a line of the protocol.
constexpr std::size_t kMostOrderBytes = 256 * 1024;
/// Orders of a replay that a status lists: it is sent twice a second.
constexpr std::size_t kMostTakenOverShown = 100;
/// Final reports kept for a new console, in bytes of JSON: with their orders, a console that died between
/// hearing of one and writing it down costs the journal nothing.
constexpr std::size_t kKeptReportBytes = 4 << 20;

}  // namespace

Coordinator::Coordinator(Parts parts)
    : parts_(std::move(parts)),
      hashes_(parts_.world_size),
      next_id_(parts_.first_order_id),
      at_end_(static_cast<std::size_t>(parts_.world_size)) {}

// --- what comes from outside ---

void Coordinator::submit(const Json& ref, const Json& json, Clock::time_point now) {
  Entry entry;
  entry.ref = ref;
  if (auto error = refusal(json, entry.order)) {
    Json report = {{"state", "refused"}, {"error", error->message}, {"ref", ref}};
    parts_.report("order", std::move(report));
    return;
  }
  entry.order.id = next_id_++;
  parts_.report("order", report_of(entry, "accepted"));
  queue_.push_back(std::move(entry));
  open_next(now);
}

std::optional<Error> Coordinator::refusal(const Json& json, Order& order) const {
  const auto refuse = [](std::string text) { return Error{ErrorKind::refused, std::move(text)}; };
  if (ended_) return refuse("the run is ending; it takes no more orders");
  const std::size_t bytes = json.dump(-1, ' ', false, Json::error_handler_t::replace).size();
  if (bytes > kMostOrderBytes)
    return refuse(
        fmt::format("an order may have {} bytes, this one has {}; split it", kMostOrderBytes, bytes));
  if (queue_.size() >= parts_.times.queue)
    return refuse(fmt::format(
        "{} orders wait for their turn already; wait for one to be applied, then repeat", queue_.size()));
  if (const std::size_t waiting = waiting_for_step(); waiting >= parts_.times.committed)
    return refuse(fmt::format("{} orders wait for their step already; withdraw one, or wait", waiting));
  auto parsed = order_from_json(json).and_then(
      [&](Order given) { return checked_order(parts_.schema, std::move(given)); });
  if (!parsed) return parsed.error();
  order = *std::move(parsed);
  if (order.session != kOwnSession) return std::nullopt;
  return refuse(fmt::format("session '{}' is the run's own", kOwnSession));
}

void Coordinator::withdraw(const Json& request, Clock::time_point now) {
  const auto meant = [&](const Entry& entry) {
    if (entry.withdraws != 0 || entry.order.session == kOwnSession) return false;  // a stop stays
    return request.contains("id") ? request["id"] == entry.order.id
                                  : request.contains("ref") && request["ref"] == entry.ref;
  };
  if (const auto found = std::find_if(queue_.begin(), queue_.end(), meant); found != queue_.end()) {
    const Entry entry = std::move(*found);
    queue_.erase(found);
    report_final(report_of(entry, "withdrawn"), entry);
    return;
  }
  if (open_ && meant(open_->entry)) {
    if (suspended_) {  // opened again by go_on(): as if it waited
      queue_.push_front(std::move(open_->entry));
      open_.reset();
      withdraw(request, now);
      return;
    }
    close_open("withdrawn", "", now);
    return;
  }
  for (const auto& [id, agreed] : agreed_) {
    if (!meant(agreed.entry)) continue;
    withdraw_agreed(id, now);
    return;
  }
}

/// By the same protocol as an order: the fences tell whether its step can still be reached by nobody.
void Coordinator::withdraw_agreed(std::uint64_t id, Clock::time_point now) {
  if (!agreed_.at(id).targeted) return;  // it applies at the next step; its report is on the way
  const auto same = [&](const Entry& entry) { return entry.withdraws == id; };
  if (std::any_of(queue_.begin(), queue_.end(), same) || (open_ && same(open_->entry))) return;
  Entry entry;
  entry.withdraws = id;
  queue_.push_front(std::move(entry));
  open_next(now);
}

void Coordinator::cancel(std::uint64_t order, std::size_t call) {
  if (calls_.count({order, call}) == 0) return;
  send_all({{"t", message::kCancel}, {"order", order}, {"call", call}});
}

void Coordinator::cancel_evaluation(std::int64_t step) {
  send_all({{"t", message::kCancel}, {"evaluation", step}});
}

void Coordinator::stop(const std::string& reason, bool resumable, Clock::time_point now, bool save) {
  if (stop_) return;
  stop_ = OwnStop{reason, resumable, save, 0, now};
  renew_stop(now);
}

/// The stop is tried until it is applied: a rank that is stuck for a while must not lose it.
void Coordinator::renew_stop(Clock::time_point now) {
  if (!stop_ || stop_->id != 0 || ended_ || suspended_ || now < stop_->again) return;
  Entry entry;
  entry.order.session = kOwnSession;
  entry.order.source = fmt::format("-- {}", stop_->reason);
  entry.order.calls = {
      {"run.stop", {{"save", stop_->save}, {"resumable", stop_->resumable}, {"reason", stop_->reason}}}};
  entry.order.id = stop_->id = next_id_++;
  parts_.report("order", report_of(entry, "accepted"));
  queue_.push_front(std::move(entry));
  open_next(now);
}

std::uint64_t Coordinator::submit_own(Order order, Clock::time_point now) {
  if (ended_ || stop_ || queue_.size() >= parts_.times.queue) return 0;
  Entry entry;
  entry.order = std::move(order);
  entry.order.session = entry.order.user = kOwnSession;
  const std::uint64_t id = entry.order.id = next_id_++;
  parts_.report("order", report_of(entry, "accepted"));
  queue_.push_back(std::move(entry));
  open_next(now);
  return id;
}

void Coordinator::take_over(const Committed& committed) {
  Agreed agreed;
  agreed.entry.order = committed.order;
  agreed.step = committed.step;
  agreed.targeted = agreed.taken_over = true;
  agreed.confirmations.resize(static_cast<std::size_t>(parts_.world_size));
  agreed_.emplace(committed.order.id, std::move(agreed));
  ++commits_;
}

void Coordinator::inherit(const Committed& committed) {
  Agreed agreed;
  agreed.entry.order = committed.order;
  agreed.step = committed.step;
  agreed.targeted = committed.targeted;
  agreed_.emplace(committed.order.id, std::move(agreed));
  next_id_ = std::max(next_id_, committed.order.id + 1);
  if (!committed.targeted) floor_ = std::max(floor_, committed.step);
  for (std::size_t call = 0; call < committed.order.calls.size(); ++call)
    calls_.insert({committed.order.id, call});
}

void Coordinator::go_on(int world_size, std::uint64_t commits, Clock::time_point now) {
  const auto ranks = static_cast<std::size_t>(world_size);
  parts_.world_size = world_size;
  hashes_ = StateHashes(world_size);
  at_end_.assign(ranks, std::nullopt);
  commits_ = commits;
  for (auto& [id, agreed] : agreed_) {
    agreed.confirmations.assign(ranks, std::nullopt);
    if (agreed.patience || !agreed.targeted) agreed.patience = patience_from(now);
  }
  if (open_) {
    queue_.push_front(std::move(open_->entry));
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
    if (type == message::kApplied) on_applied(source, message, now);
    if (type == message::kEnd) on_end(source, message);
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
  Open open;
  open.entry = std::move(queue_.front());
  queue_.pop_front();
  open.ticket = next_ticket_++;
  open.answers.resize(static_cast<std::size_t>(parts_.world_size));
  open.opened = now;
  open.patience = patience_from(now);
  Json message = {{"t", message::kPrepare}, {"ticket", open.ticket}};
  if (open.entry.withdraws != 0)
    message["withdraws"] = open.entry.withdraws;
  else
    message["order"] = to_json(open.entry.order);
  open_ = std::move(open);
  send_all(message);
}

void Coordinator::on_prepared(int source, const Json& message, Clock::time_point now) {
  if (!open_ || open_->fencing || message.at("ticket") != open_->ticket) return;
  if (message.contains("error")) {
    close_open("refused", message["error"], now);
    return;
  }
  open_->answers[static_cast<std::size_t>(source)] = 0;
  if (unanswered(*open_).empty()) start_fencing();
}

void Coordinator::start_fencing() {
  open_->fencing = true;
  std::fill(open_->answers.begin(), open_->answers.end(), std::nullopt);
  send_all({{"t", message::kFence}, {"ticket", open_->ticket}});
}

void Coordinator::on_fenced(int source, const Json& message, Clock::time_point now) {
  if (!open_ || !open_->fencing || message.at("ticket") != open_->ticket) return;
  open_->answers[static_cast<std::size_t>(source)] = message.at("step").get<std::int64_t>();
  if (unanswered(*open_).empty()) agree(now);
}

void Coordinator::agree(Clock::time_point now) {
  std::int64_t first = floor_;
  for (const auto& fence : open_->answers) first = std::max(first, *fence);
  if (open_->entry.withdraws != 0) {
    agree_withdrawal(first);
    open_next(now);
    return;
  }
  Agreed agreed;
  const auto target = open_->entry.order.at_step;
  agreed.targeted = target && *target >= first;
  agreed.step = agreed.targeted ? *target : first;
  if (!agreed.targeted) floor_ = first;
  agreed.confirmations.resize(static_cast<std::size_t>(parts_.world_size));
  if (!agreed.targeted) agreed.patience = patience_from(now);
  send_all({{"t", message::kCommit},
            {"ticket", open_->ticket},
            {"step", agreed.step},
            {"targeted", agreed.targeted}});
  ++commits_;

  agreed.entry = std::move(open_->entry);
  open_.reset();
  const std::uint64_t id = agreed.entry.order.id;
  for (std::size_t call = 0; call < agreed.entry.order.calls.size(); ++call) calls_.insert({id, call});
  Json report = report_of(agreed.entry, "committed");
  report["step"] = agreed.step;
  agreed_.emplace(id, std::move(agreed));
  parts_.report("order", std::move(report));
  open_next(now);
}

/// Nobody has begun `step`: an order beyond it can be taken back on all ranks.
void Coordinator::agree_withdrawal(std::int64_t step) {
  const auto found = agreed_.find(open_->entry.withdraws);
  const std::uint64_t ticket = open_->ticket;
  open_.reset();
  if (found == agreed_.end() || found->second.step <= step) {
    send_all({{"t", message::kAbort}, {"ticket", ticket}});
    return;
  }
  send_all({{"t", message::kCommit}, {"ticket", ticket}, {"withdraws", found->first}});
  ++commits_;
  const Entry entry = std::move(found->second.entry);
  agreed_.erase(found);
  report_final(report_of(entry, "withdrawn"), entry);
}

/// Ends the open order without a commit: nothing changes anywhere.
void Coordinator::close_open(const std::string& state, const std::string& error, Clock::time_point now) {
  send_all({{"t", message::kAbort}, {"ticket", open_->ticket}});
  const Entry entry = std::move(open_->entry);
  open_.reset();
  if (entry.withdraws == 0) {
    Json report = report_of(entry, state.c_str());
    if (!error.empty()) report["error"] = error;
    report_final(std::move(report), entry);
  } else if (const auto target = agreed_.find(entry.withdraws); target != agreed_.end()) {
    Json report = report_of(target->second.entry, "waiting");
    report["text"] = "not withdrawn: " + error;
    parts_.report("order", std::move(report));
  }
  if (stop_ && stop_->id == entry.order.id && entry.withdraws == 0) {
    stop_->id = 0;
    stop_->again = now + parts_.times.stop_retry;
  }
  open_next(now);
}

// --- after the commit ---

void Coordinator::on_applied(int source, const Json& message, Clock::time_point now) {
  const auto found = agreed_.find(message.at("order").get<std::uint64_t>());
  if (found == agreed_.end()) return;
  Agreed& agreed = found->second;
  agreed.confirmations[static_cast<std::size_t>(source)] =
      Confirmation{message.at("step"), message.at("digest"), message.value("error", "")};
  if (source == 0) {
    agreed.moved = message.value("moved", Json::array());
    agreed.renewed_s = message.value("renewed_s", Json());
  }
  if (!agreed.patience) agreed.patience = patience_from(now);
  if (!unconfirmed(agreed).empty()) return;
  Agreed complete = std::move(agreed);
  agreed_.erase(found);
  conclude(std::move(complete));
}

void Coordinator::conclude(Agreed agreed) {
  const Order& order = agreed.entry.order;
  if (const std::string error = agreed.confirmations[0]->error; !error.empty()) {
    for (std::size_t call = 0; call < order.calls.size(); ++call) calls_.erase({order.id, call});
    Json report = report_of(agreed.entry, "refused");
    report["error"] = fmt::format("at step {}: {}", agreed.step, error);
    report_final(std::move(report), agreed.entry);
    return;
  }
  Json changed = Json::object();
  for (const auto& moved : agreed.moved) {
    const SettingSpec* spec = parts_.schema.setting(moved.at("name").get<std::string>());
    const bool computed = spec != nullptr && !spec->knobs.empty();
    changed[moved.at("name").get<std::string>()] = {{"value", moved.at("after")},
                                                    {"source", computed ? "computed" : source_of(order)}};
  }
  if (!changed.empty()) parts_.report("settings", std::move(changed));
  Json report = report_of(agreed.entry, "applied");
  report["applied"] = {{"id", order.id},
                       {"step", agreed.confirmations[0]->step},
                       {"ranks", parts_.world_size},
                       {"world_size", parts_.world_size},
                       {"digest", agreed.confirmations[0]->digest},
                       {"moved", agreed.moved}};
  if (!agreed.renewed_s.is_null()) report["applied"]["renewed_s"] = agreed.renewed_s;
  report["calls"] = Json::array();
  for (std::size_t call = 0; call < order.calls.size(); ++call)
    report["calls"].push_back({{"call", call}, {"action", order.calls[call].action}});
  compare(agreed, report);
  report_final(std::move(report), agreed.entry);
}

/// Steps and digests have to be the same everywhere; otherwise footplate itself is broken: say it loudly.
void Coordinator::compare(const Agreed& agreed, Json& report) {
  const Confirmation& first = *agreed.confirmations[0];
  std::vector<int> odd;
  for (int rank = 1; rank < parts_.world_size; ++rank) {
    const Confirmation& other = *agreed.confirmations[static_cast<std::size_t>(rank)];
    if (other.step != first.step || other.digest != first.digest || !other.error.empty()) odd.push_back(rank);
  }
  if (odd.empty()) return;
  report["applied"]["ranks"] = parts_.world_size - static_cast<int>(odd.size());
  report["error"] = fmt::format(
      "the ranks disagree about order {}: rank {} differs from rank 0 in step or digest; "
      "stop the run and resume it from its last checkpoint",
      agreed.entry.order.id, fmt::join(odd, ", rank "));
  parts_.status.note("disagree", report["error"]);
  parts_.report("warn", {{"kind", "disagree"}, {"ranks", odd}, {"text", report["error"]}});
}

void Coordinator::on_call(const Json& message) {
  Json report = message;
  report.erase("t");
  const std::string state = message.at("state");
  if (state != "running") calls_.erase({message.at("order"), message.at("call")});
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

// --- the end ---

void Coordinator::on_end(int source, const Json& message) {
  at_end_[static_cast<std::size_t>(source)] = {message.at("step"), message.at("commits")};
  finish_if_all_at_end();
}

/// A rank that stood at the end before it heard of the last commit may have been prolonged by it: its
/// word counts once it has heard of all of them.
void Coordinator::finish_if_all_at_end() {
  if (ended_ || open_ || suspended_ || !queue_.empty()) return;
  for (const auto& rank : at_end_)
    if (!rank || rank->second != commits_) return;
  ended_ = true;
  send_all({{"t", message::kFinish}});
  for (const auto& [id, agreed] : agreed_) {
    Json report = report_of(agreed.entry, "withdrawn");
    report["error"] = fmt::format("the run ended at step {}, before step {}", at_end_[0]->first, agreed.step);
    report_final(std::move(report), agreed.entry);
  }
  agreed_.clear();
  calls_.clear();
  parts_.report("run", {{"state", "ending"}, {"step", at_end_[0]->first}});
}

// --- time ---

void Coordinator::tick(Clock::time_point now) {
  for (Json& change : parts_.status.tick(now)) parts_.report("rank", std::move(change));
  if (suspended_) return;
  if (open_ && now - open_->opened >= parts_.times.outcome) {
    const double limit_s = std::chrono::duration<double>(parts_.times.outcome).count();
    close_open("aborted",
               fmt::format("no outcome within {:.3g} s: waited for {}; nothing changed on any rank", limit_s,
                           parts_.status.whom(unanswered(*open_), now)),
               now);
  }
  report_waiting(now);
  renew_stop(now);
  open_next(now);
  finish_if_all_at_end();
}

void Coordinator::report_waiting(Clock::time_point now) {
  if (open_ && open_->entry.withdraws == 0 && now >= open_->patience.next) {
    be_patient(open_->patience, now);
    Json report = report_of(open_->entry, "waiting");
    report["text"] = "waiting for " + parts_.status.whom(unanswered(*open_), now);
    parts_.report("order", std::move(report));
  }
  for (auto& [id, agreed] : agreed_) {
    if (!agreed.patience || now < agreed.patience->next) continue;
    be_patient(*agreed.patience, now);
    Json report = report_of(agreed.entry, "waiting");
    report["step"] = agreed.step;
    report["text"] = "waiting for " + parts_.status.whom(unconfirmed(agreed), now);
    parts_.report("order", std::move(report));
  }
}

void Coordinator::be_patient(Patience& patience, Clock::time_point now) const {
  patience.interval = std::min(2 * patience.interval, parts_.times.waiting_most);
  patience.next = now + patience.interval;
}

Coordinator::Clock::time_point Coordinator::next_tick() const {
  auto next = parts_.status.next_tick();
  if (suspended_) return next;
  if (open_) next = std::min({next, open_->opened + parts_.times.outcome, open_->patience.next});
  for (const auto& [id, agreed] : agreed_)
    if (agreed.patience) next = std::min(next, agreed.patience->next);
  if (stop_ && stop_->id == 0 && !ended_) next = std::min(next, stop_->again);
  return next;
}

// --- small things ---

std::vector<int> Coordinator::unanswered(const Open& open) const {
  std::vector<int> ranks;
  for (int rank = 0; rank < parts_.world_size; ++rank)
    if (!open.answers[static_cast<std::size_t>(rank)]) ranks.push_back(rank);
  return ranks;
}

std::vector<int> Coordinator::unconfirmed(const Agreed& agreed) const {
  std::vector<int> ranks;
  for (int rank = 0; rank < parts_.world_size; ++rank)
    if (!agreed.confirmations[static_cast<std::size_t>(rank)]) ranks.push_back(rank);
  return ranks;
}

Json Coordinator::report_of(const Entry& entry, const char* state) const {
  return {{"state", state}, {"id", entry.order.id}, {"ref", entry.ref}};
}

void Coordinator::report_final(Json report, const Entry& entry) {
  if (report["state"] == "applied") report["order"] = to_json(entry.order);
  final_bytes_ += report.dump(-1, ' ', false, Json::error_handler_t::replace).size();
  final_.push_back(report);
  while (final_.size() > parts_.times.reports || (final_bytes_ > kKeptReportBytes && final_.size() > 1)) {
    final_bytes_ -= final_.front().dump(-1, ' ', false, Json::error_handler_t::replace).size();
    final_.pop_front();
  }
  parts_.report("order", std::move(report));
}

/// Those of a replay are as many as the journal has.
std::size_t Coordinator::waiting_for_step() const {
  return static_cast<std::size_t>(std::count_if(agreed_.begin(), agreed_.end(),
                                                [](const auto& entry) { return !entry.second.taken_over; }));
}

Json Coordinator::open_orders(std::size_t order_bytes) const {
  Json reports = Json::array();
  const auto add = [&](const Entry& entry, const char* state) {
    if (entry.withdraws != 0) return;
    reports.push_back(report_of(entry, state));
    if (order_bytes == 0) return;
    Json order = to_json(entry.order);
    const std::size_t bytes = order.dump(-1, ' ', false, Json::error_handler_t::replace).size();
    if (bytes > order_bytes) order = {{"session", entry.order.session}, {"user", entry.order.user}};
    order_bytes -= std::min(order_bytes - 1, bytes);
    reports.back()["order"] = std::move(order);
  };
  std::size_t taken_over = 0;
  for (const auto& [id, agreed] : agreed_) {
    if (agreed.taken_over && ++taken_over > kMostTakenOverShown) continue;
    add(agreed.entry, "committed");
    reports.back()["step"] = agreed.step;
  }
  if (open_) add(open_->entry, "accepted");
  for (const auto& entry : queue_) add(entry, "accepted");
  return reports;
}

void Coordinator::send_all(const Json& message) {
  for (int rank = 0; rank < parts_.world_size; ++rank) parts_.send(rank, message);
}

}  // namespace footplate
