#include "runtime/orders/participant.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <csignal>
#include <utility>

#include "runtime/schema/actions.h"
#include "runtime/stacks/thread_stacks.h"
#include "runtime/watch/inquiry.h"
#include "runtime/watch/messages.h"

namespace footplate {
namespace {

/// Of the interval between heartbeats, what rank 0's come after the others': 50 ms.
constexpr int kLag = 12;

/// Commits and confirmations kept for a new rank 0. Only what was on its way when a rank was lost is needed.
constexpr std::size_t kKept = 64;

template <class T>
void keep(std::deque<T>& kept, T one) {
  kept.push_back(std::move(one));
  if (kept.size() > kKept) kept.pop_front();
}

Json moved_to_json(const std::vector<Moved>& moved) {
  Json list = Json::array();
  for (const auto& one : moved)
    list.push_back({{"name", one.name}, {"before", to_json(one.before)}, {"after", to_json(one.after)}});
  return list;
}

Json collective_to_json(const LedgerEntry& entry) {
  const bool running = !entry.is_finished();
  const auto since = running ? entry.enqueued : entry.finished;
  return {{"sequence", entry.sequence},
          {"kind", to_string(entry.kind)},
          {"elements", entry.elements},
          {"running", running},
          {"age_s", in_seconds(LedgerEntry::Clock::now() - since)}};
}

Json pattern_to_json(const CollectivePattern& pattern) {
  const std::chrono::duration<double, std::milli> total = pattern.total, longest = pattern.longest;
  return {{"kind", to_string(pattern.kind)}, {"at_least", pattern.at_least}, {"count", pattern.count},
          {"bytes", pattern.bytes},          {"total_ms", total.count()},    {"longest_ms", longest.count()}};
}

}  // namespace

Participant::Participant(Parts parts)
    : parts_(std::move(parts)), refuse_(fault("refuse", parts_.channel.rank())) {}

void Participant::handle(const Json& message) {
  const std::string type = message.at("t");
  if (type == message::kPrepare) prepare(message);
  if (type == message::kFence) fence(message);
  if (type == message::kCommit) commit(message);
  if (type == message::kAbort) abort(message);
  if (type == message::kCancel) cancel(message);
  if (type == message::kFinish) parts_.gate.finish();
  if (type == message::kInquire) inquire(message);
  if (type == message::kDie) kill_if_here(message);
  if (type == message::kMet) {
    meeting_ = false;
    parts_.gate.met(message.at("ticket"), message.value("error", ""));
  }
}

void Participant::cancel(const Json& message) {
  if (const auto step = message.find("evaluation"); step != message.end())
    parts_.gate.cancel_evaluation(step->get<std::int64_t>());
  else
    parts_.gate.cancel(message.at("order"), message.at("call"));
}

/// A rank whose control thread lives dies by itself; one that is stopped is killed by its neighbours.
void Participant::kill_if_here(const Json& message) const {
  const pid_t pid = message.at("pid");
  if (message.at("rank") == parts_.channel.rank()) {
    std::raise(SIGKILL);
  } else if (message.at("host") == parts_.host && pid > 1) {
    ::kill(pid, SIGKILL);
  }
}

void Participant::inquire(const Json& message) {
  Json reply;
  if (message.at("what") == message::kStacks)
    return answer({{"t", message::kStacks}, {"threads", stacks_to_json(take_stacks())}});
  if (parts_.ledger == nullptr) return;
  if (message.at("what") == "ledger") {
    reply = ledger_to_json(*parts_.ledger);
    reply["t"] = message::kLedger;
  } else {
    reply = {{"t", message::kPatterns}, {"patterns", Json::array()}};
    for (const CollectivePattern& pattern : parts_.ledger->patterns()) {
      reply["patterns"].push_back(pattern_to_json(pattern));
      const auto overdue = overdue_.find({pattern.kind, pattern.at_least});
      reply["patterns"].back()["overdue"] = overdue == overdue_.end() ? 0 : overdue->second;
    }
  }
  answer(reply);
}

void Participant::tell(const Watchdog::Finding& finding) {
  const LedgerEntry& entry = finding.entry;
  if (!finding.over) ++overdue_[{entry.kind, size_class(entry.elements)}];
  Json message = {{"t", message::kOverdue},
                  {"sequence", entry.sequence},
                  {"kind", to_string(entry.kind)},
                  {"name", entry.name},
                  {"step", entry.step},
                  {"elements", entry.elements},
                  {"bytes", entry.elements * static_cast<std::int64_t>(size_of(entry.type))},
                  {"setting", finding.setting},
                  {"limit_s", in_seconds(finding.limit)}};
  if (finding.over) {
    message["over"] = true;
    message["took_s"] = in_seconds(entry.finished - entry.started);
  }
  answer(message);
}

void Participant::prepare(const Json& message) {
  Open open;
  open.ticket = message.at("ticket");
  ticket_ = std::max(ticket_, open.ticket);
  open.withdraws = message.value("withdraws", std::uint64_t{0});
  Result<void> outcome;
  if (open.withdraws != 0) {
    outcome = can_withdraw(open.withdraws);
  } else {
    auto order = read_order(message.at("order"));
    if (order) {
      order_ = std::max(order_, order->id);
      open.order = *std::move(order);
      outcome = prepared(open.order);
    } else {
      outcome = tl::unexpected(order.error());
    }
  }
  Json reply = {{"t", message::kPrepared}, {"ticket", open.ticket}};
  if (!outcome) reply["error"] = outcome.error().message;
  if (outcome) open_ = std::move(open);
  answer(reply);
}

Result<void> Participant::prepared(const Order& order) {
  const int rank = parts_.channel.rank();
  if (refuse_ && order.session != kOwnSession &&
      refuse_->matches("order", static_cast<std::int64_t>(order.id)))
    return fail(ErrorKind::refused, fmt::format("rank {} refused (FOOTPLATE_FAULT asks for it)", rank));
  if (order.session != kOwnSession && calls_action(order, kAdmit))
    return fail(
        ErrorKind::refused,
        "comm.admit: the run gives this order itself, once a replacement is ready; set comm.replace = true");
  auto after = foresee(parts_.schema, parts_.gate.forecast(), order);
  if (!after) return tl::unexpected(after.error());
  Result<void> can = fail(ErrorKind::failed, "");
  try {
    can = parts_.steerable.prepare(order, *after);
  } catch (const std::exception& error) {
    can = fail(ErrorKind::failed, error.what());
  }
  if (can || can.error().message.find(fmt::format("rank {}", rank)) != std::string::npos) return can;
  return fail(can.error().kind, fmt::format("rank {}: {}", rank, can.error().message));
}

Result<void> Participant::can_withdraw(std::uint64_t order) const {
  if (parts_.gate.is_pending(order)) return {};
  return fail(ErrorKind::refused, fmt::format("order {} has been applied already", order));
}

void Participant::fence(const Json& message) {
  const std::uint64_t ticket = message.at("ticket");
  if (!open_ || open_->ticket != ticket) return;
  answer({{"t", message::kFenced}, {"ticket", ticket}, {"step", parts_.gate.propose_fence()}});
}

void Participant::commit(const Json& message) {
  if (!open_ || open_->ticket != message.at("ticket").get<std::uint64_t>()) return;
  Commit commit{open_->ticket, open_->withdraws, {}};
  if (commit.withdraws == 0)
    commit.committed = {std::move(open_->order), message.at("step"), message.at("targeted")};
  open_.reset();
  take_commit(std::move(commit));
}

void Participant::take_commit(Commit commit) {
  if (commit.withdraws != 0) {
    std::erase_if(committed_, [&](const Committed& one) { return one.order.id == commit.withdraws; });
    parts_.gate.withdraw(commit.withdraws);
  } else {
    keep(committed_, commit.committed);
    parts_.gate.commit(commit.committed);
  }
  commit_ = std::move(commit);
}

/// As `standing` tells it, and `rejoin` brings it back.
Json Participant::to_json(const Commit& commit) {
  if (commit.withdraws != 0) return {{"ticket", commit.ticket}, {"withdraws", commit.withdraws}};
  Json json = to_json(commit.committed);
  json["ticket"] = commit.ticket;
  return json;
}

Json Participant::to_json(const Committed& committed) {
  return {{"order", footplate::to_json(committed.order)},
          {"step", committed.step},
          {"targeted", committed.targeted}};
}

Result<Committed> Participant::read_committed(const Json& json) const {
  return read_order(json.at("order")).map([&](Order order) {
    return Committed{std::move(order), json.at("step"), json.at("targeted")};
  });
}

Result<Participant::Commit> Participant::read_commit(const Json& json) const {
  Commit commit{json.at("ticket"), json.value("withdraws", std::uint64_t{0}), {}};
  if (commit.withdraws != 0) return commit;
  return read_committed(json).map([&](Committed committed) {
    commit.committed = std::move(committed);
    return commit;
  });
}

/// Types again: what CBOR brings has none (a double that happens to be whole).
Result<Order> Participant::read_order(const Json& json) const {
  return order_from_json(json).and_then(
      [&](Order given) { return checked_order(parts_.schema, std::move(given)); });
}

void Participant::abort(const Json& message) {
  if (!open_ || open_->ticket != message.at("ticket").get<std::uint64_t>()) return;
  parts_.gate.release_fence();
  open_.reset();
}

void Participant::handle(const GateEvent& event) {
  if (const auto* applied = std::get_if<OrderApplied>(&event)) {
    Json message = {{"t", message::kApplied},
                    {"order", applied->order},
                    {"step", applied->step},
                    {"digest", applied->digest}};
    if (applied->error) message["error"] = applied->error->message;
    if (applied->renewed_s) message["renewed_s"] = *applied->renewed_s;
    Json kept = message;
    kept["moved"] = moved_to_json(applied->moved);
    answer(parts_.channel.rank() == 0 ? kept : message);
    keep(applied_, std::move(kept));
  } else if (const auto* call = std::get_if<CallMoved>(&event)) {
    if (parts_.channel.rank() != 0) return;
    Json message = {{"t", message::kCall},
                    {"order", call->order},
                    {"call", call->call},
                    {"action", call->action},
                    {"state", call->state}};
    if (!call->result.is_null()) message["result"] = call->result;
    if (!call->error.empty()) message["error"] = call->error;
    answer(message);
  } else if (const auto* end = std::get_if<ReachedEnd>(&event)) {
    answer({{"t", message::kEnd}, {"step", end->step}, {"commits", end->commits}});
  } else if (const auto* hash = std::get_if<StateHash>(&event)) {
    answer({{"t", message::kHash}, {"step", hash->step}, {"hash", hash->hash}});
  } else if (const auto* arrived = std::get_if<Arrived>(&event)) {
    meeting_ = true;
    answer({{"t", message::kArrived},
            {"ticket", arrived->ticket},
            {"what", arrived->what},
            {"within_s", in_seconds(arrived->within)}});
  }
}

bool Participant::tick(Clock::time_point now) {
  // A state that has changed (paused, evaluating, …) is told now, not with the next heartbeat.
  const bool due = now >= next_beat_ || state() != told_;
  if (due) beat(now);
  return due;
}

Participant::Clock::time_point Participant::beat_after(Clock::time_point now) const {
  const Clock::duration every = std::min(interval_, parts_.times.heartbeat);
  const Clock::duration lag = parts_.channel.rank() == 0 ? every / kLag : Clock::duration(0);
  const auto beats = (now.time_since_epoch() - lag) / every;
  return Clock::time_point(beats * every + every + lag);
}

void Participant::beat(Clock::time_point now) {
  next_beat_ = beat_after(now);
  told_ = state();
  Json message = {{"t", message::kBeat},
                  {"at_ns", std::chrono::nanoseconds(now.time_since_epoch()).count()},
                  {"host", parts_.host},
                  {"pid", ::getpid()},
                  {"step", parts_.progress.step()},
                  {"phase", to_string(parts_.progress.phase())},
                  {"phase_s", in_seconds(parts_.progress.in_phase())},
                  {"state", told_}};
  if (const auto step = parts_.progress.evaluated_step()) message["evaluating_step"] = *step;
  if (const double best = parts_.progress.best_eval_loss(); std::isfinite(best))
    message["best_eval_loss"] = best;
  if (parts_.ledger != nullptr) {
    if (const LedgerEntry entry = parts_.ledger->current(); entry.sequence != 0)
      message["collective"] = collective_to_json(entry);
    if (const auto newest = parts_.ledger->find(parts_.ledger->newest()))
      message["launched"] = {newest->sequence, newest->digest};
  }
  // The first is heard at once: who is stuck can be killed only by the pid that it tells.
  if (std::exchange(introduced_, true))
    parts_.channel.send_quietly(0, message);
  else
    parts_.channel.send(0, message);
}

std::string Participant::state() const {
  const Phase phase = parts_.progress.phase();
  if (phase == Phase::ended) return "ended";
  if (phase == Phase::starting) return "starting";
  switch (parts_.gate.held()) {
    case Held::pause:
      return "paused";
    case Held::end:
      return "ending";
    case Held::lost:
      return "recovering";
    default:
      break;
  }
  if (phase == Phase::evaluation) return "evaluating";
  if (phase == Phase::saving) return "saving";
  return "running";
}

void Participant::ask_to_stop(const std::string& reason, bool resumable) {
  answer({{"t", message::kStop}, {"reason", reason}, {"resumable", resumable}});
}

void Participant::say_goodbye() {
  answer({{"t", message::kBye}});
}

void Participant::report_recovery_state(const RecoveryState& standing, std::uint32_t generation) {
  answer({{"t", message::kStanding},
          {"generation", generation},
          {"step", standing.step},
          {"paused", standing.paused},
          {"finished", standing.finished},
          {"save", standing.save.has_value()},
          {"tag", standing.save.value_or("")},
          {"commits", standing.commits},
          {"begun", standing.begun},
          {"refused", standing.refused},
          {"refusal", standing.refusal},
          {"sequence", parts_.ledger != nullptr ? parts_.ledger->newest() : 0},
          {"commit", commit_ ? to_json(*commit_) : Json()},
          {"ticket", ticket_},
          {"order", order_}});
}

Json Participant::hand_over() const {
  Json committed = Json::array();
  for (const Committed& one : committed_) committed.push_back(to_json(one));
  return {{"committed", std::move(committed)},
          {"applied", applied_},
          {"commit", commit_ ? to_json(*commit_) : Json()},
          {"ticket", ticket_},
          {"order", order_}};
}

void Participant::take_over(const Json& handed) {
  for (const Json& one : handed.at("committed"))
    if (auto committed = read_committed(one)) committed_.push_back(*std::move(committed));
  for (const Json& one : handed.at("applied")) applied_.push_back(one);
  if (const Json& newest = handed.at("commit"); !newest.is_null())
    if (auto commit = read_commit(newest)) commit_ = *std::move(commit);
  ticket_ = handed.at("ticket");
  order_ = handed.at("order");
}

void Participant::rejoin(const Json& verdict, int local_ranks) {
  open_.reset();
  meeting_ = false;
  introduced_ = false;
  overdue_.clear();
  const Json& newest = verdict.at("commit");
  if (!newest.is_null() && (!commit_ || newest.at("ticket") > commit_->ticket))
    if (auto commit = read_commit(newest)) take_commit(*std::move(commit));  // was checked when prepared
  Rejoin rejoin;
  rejoin.step = verdict.at("step");
  rejoin.source = verdict.at("source");
  const Json& behind = verdict.at("behind");
  rejoin.level = !behind.empty();
  rejoin.behind = std::find(behind.begin(), behind.end(), Json(parts_.channel.rank())) != behind.end();
  rejoin.save = verdict.at("save");
  rejoin.tag = verdict.at("tag");
  rejoin.generation = verdict.at("generation");
  rejoin.sequence = verdict.at("sequence");
  rejoin.local_ranks = local_ranks;
  rejoin.refused = verdict.value("refused", std::uint64_t{0});
  rejoin.refusal = verdict.value("refusal", "");
  parts_.gate.resume(rejoin, verdict.at("commits"), verdict.at("begun"), verdict.at("paused"),
                     verdict.at("finished"));
  for (Json message : applied_) {
    if (parts_.channel.rank() != 0) message.erase("moved");
    answer(message);
  }
}

}  // namespace footplate
