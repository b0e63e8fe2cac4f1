#include "runtime/orders/participant.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <csignal>
#include <utility>

#include "protocol/overloaded.h"
#include "runtime/schema/actions.h"

namespace footplate {
namespace {

/// Of the interval between heartbeats, what a rank's come after those of the ranks that send to it: 50 ms.
constexpr int kLag = 12;

/// Commits and confirmations kept for a new rank 0. Only what was on its way when a rank was lost is needed:
/// of all orders that may wait for one step (ControlTimes::committed), and of those behind them.
constexpr std::size_t kKept = 512;

/// What has moved, and how long that took, rank 0 alone tells: so all others say the same.
void leave_to_rank_zero(message::Applied& applied) {
  applied.moved.clear();
  applied.renewed_s.reset();
}

template <class T>
void keep(std::deque<T>& kept, T one) {
  kept.push_back(std::move(one));
  if (kept.size() > kKept) kept.pop_front();
}

/// One that waits behind others in the rank's own queue runs since they are through.
CollectiveStatus status_of(const LedgerEntry& entry) {
  const bool running = !entry.is_finished();
  const auto launched = entry.is_started() ? entry.started : entry.enqueued;
  const auto since = running ? launched : entry.finished;
  return {.sequence = entry.sequence,
          .kind = std::string(to_string(entry.kind)),
          .elements = entry.elements,
          .running = running,
          .age_s = in_seconds(LedgerEntry::Clock::now() - since)};
}

}  // namespace

Participant::Participant(Parts parts)
    : parts_(std::move(parts)), refuse_(fault("refuse", parts_.channel.rank())) {
  if (parts_.ledger != nullptr && !parts_.run_directory.empty())
    dumps_.emplace(*parts_.ledger, parts_.run_directory, parts_.host);
}

void Participant::handle(const message::ToRanks& message) {
  std::visit(Overloaded{[this](const message::Prepare& asked) { prepare(asked); },
                        [this](const message::Fence& asked) { fence(asked); },
                        [this](const message::Commit& agreed) { commit(agreed); },
                        [this](const message::Abort& aborted) { abort(aborted); },
                        [this](const message::Cancel& cancelled) { cancel(cancelled); },
                        [this](const message::Finish&) { parts_.gate.finish(); },
                        [this](const message::Inquire& asked) { inquire(asked); },
                        [this](const message::Die& stuck) { kill_if_here(stuck); },
                        [this](const message::Met& met) {
                          meeting_ = false;
                          parts_.gate.met(met.ticket, met.error);
                        },
                        [](const message::Remedy&) {}, [](const message::Rejoin&) {}},
             message);
}

void Participant::cancel(const message::Cancel& cancelled) {
  if (cancelled.evaluation)
    parts_.gate.cancel_evaluation(*cancelled.evaluation);
  else
    parts_.gate.cancel(cancelled.order, cancelled.call);
}

/// A rank whose control thread lives dies by itself; one that is stopped is killed by its neighbours.
void Participant::kill_if_here(const message::Die& stuck) const {
  if (stuck.rank == parts_.channel.rank()) {
    std::raise(SIGKILL);
  } else if (stuck.host == parts_.host && stuck.pid > 1) {
    ::kill(stuck.pid, SIGKILL);
  }
}

void Participant::inquire(const message::Inquire& asked) {
  const RankQuery* query = find_rank_query(asked.what);
  if (query == nullptr) return;
  if (auto found =
          query->answer({parts_.channel.rank(), parts_.ledger, overdue_, dumps_ ? &*dumps_ : nullptr}))
    answer(message::Answer{asked.what, *std::move(found)});
}

void Participant::tell(const Watchdog::Finding& finding) {
  const LedgerEntry& entry = finding.entry;
  if (!finding.over) {
    ++overdue_[{entry.kind, size_class(entry.elements)}];
    parts_.ledger->count_overdue();
    if (dumps_) dumps_->dump_after_timeout(parts_.channel.rank(), Clock::now());
  }
  message::Overdue overdue{.sequence = entry.sequence,
                           .kind = entry.kind,
                           .name = entry.name,
                           .step = entry.step,
                           .elements = entry.elements,
                           .bytes = entry.elements * static_cast<std::int64_t>(size_of(entry.type)),
                           .setting = finding.setting,
                           .limit_s = in_seconds(finding.limit),
                           .over = finding.over};
  if (finding.over) overdue.took_s = in_seconds(entry.finished - entry.started);
  answer(overdue);
}

void Participant::prepare(const message::Prepare& asked) {
  ticket_ = std::max(ticket_, asked.ticket);
  const auto outcome = open(asked);
  answer(message::Prepared{asked.ticket, outcome ? "" : outcome.error().message});
}

Result<void> Participant::open(const message::Prepare& asked) {
  Open open{asked.ticket, {}, asked.withdraws};
  if (asked.withdraws != 0) {
    if (auto can = can_withdraw(asked.withdraws); !can) return can;
  } else {
    auto order =
        asked.order.and_then([&](Order given) { return checked_order(parts_.schema, std::move(given)); });
    if (!order) return tl::unexpected(order.error());
    order_ = std::max(order_, order->id);
    open.order = *std::move(order);
    if (auto can = can_apply(open.order); !can) return can;
  }
  open_ = std::move(open);
  return {};
}

Result<void> Participant::can_apply(const Order& order) {
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

void Participant::fence(const message::Fence& asked) {
  if (!open_ || open_->ticket != asked.ticket) return;
  answer(message::Fenced{asked.ticket, parts_.gate.propose_fence()});
}

void Participant::commit(const message::Commit& agreed) {
  if (!open_ || open_->ticket != agreed.ticket) return;
  message::NewestCommit commit{open_->ticket, open_->withdraws, {}};
  if (commit.withdraws == 0) commit.committed = {std::move(open_->order), agreed.step, agreed.targeted};
  open_.reset();
  take_commit(std::move(commit));
}

void Participant::take_commit(message::NewestCommit commit) {
  if (commit.withdraws != 0) {
    std::erase_if(committed_, [&](const Committed& one) { return one.order.id == commit.withdraws; });
    parts_.gate.withdraw(commit.withdraws);
  } else {
    keep(committed_, commit.committed);
    parts_.gate.commit(commit.committed);
  }
  commit_ = std::move(commit);
}

bool Participant::was_refused(std::uint64_t order) const {
  return std::ranges::any_of(
      applied_, [order](const message::Applied& one) { return one.order == order && !one.error.empty(); });
}

Result<Committed> Participant::checked(Committed committed) const {
  return checked_order(parts_.schema, std::move(committed.order)).map([&](Order order) {
    return Committed{std::move(order), committed.step, committed.targeted};
  });
}

Result<message::NewestCommit> Participant::checked(message::NewestCommit commit) const {
  if (commit.withdraws != 0) return commit;
  return checked(std::move(commit.committed)).map([&](Committed committed) {
    return message::NewestCommit{commit.ticket, 0, std::move(committed)};
  });
}

void Participant::abort(const message::Abort& aborted) {
  if (!open_ || open_->ticket != aborted.ticket) return;
  parts_.gate.release_fence();
  open_.reset();
}

void Participant::handle(const GateEvent& event) {
  std::visit(Overloaded{[this](const OrderApplied& applied) { tell(applied); },
                        [this](const CallMoved& call) {
                          if (parts_.channel.rank() != 0) return;
                          CallReport report;
                          report.order = call.order;
                          report.call = call.call;
                          report.action = call.action;
                          report.state = call.state;
                          report.result = footplate::to_json(call.result);
                          report.error = call.error;
                          answer(std::move(report));
                        },
                        [this](const ReachedEnd& end) {
                          answer(message::End{end.step, end.commits});
                        },
                        [this](const StateHash& state) { answer(message::Hash{state}); },
                        [this](const Arrived& arrived) {
                          meeting_ = true;
                          answer(message::Arrived{arrived.ticket, arrived.what, in_seconds(arrived.within)});
                        },
                        [](const Published&) {}, [](const Proposed&) {}, [](const AllLevel&) {}},
             event);
}

void Participant::tell(const OrderApplied& applied) {
  message::Applied told{applied.order,
                        applied.step,
                        applied.digest,
                        applied.moved,
                        applied.error ? applied.error->message : "",
                        applied.renewed_s};
  keep(applied_, told);
  if (parts_.channel.rank() != 0) leave_to_rank_zero(told);
  answer(std::move(told));
}

bool Participant::tick(Clock::time_point now) {
  // A state that has changed (paused, evaluating, …) is told now, not with the next heartbeat.
  const bool due = now >= next_beat_ || told_ != state() || told_saving_ != parts_.progress.saved_step();
  if (due) beat(now);
  return due;
}

Participant::Clock::time_point Participant::beat_after(Clock::time_point now) const {
  const Clock::duration every = std::min(interval_, parts_.times.heartbeat);
  const Clock::duration lag = every / kLag * parts_.channel.height();
  const auto beats = (now.time_since_epoch() - lag) / every;
  return Clock::time_point(beats * every + every + lag);
}

void Participant::beat(Clock::time_point now) {
  next_beat_ = beat_after(now);
  const message::Beat beat = beat_now(now);
  told_ = beat.state;
  told_saving_ = beat.saving_step;
  const MessageBytes message = encoded(message::ToRankZero(beat));
  // The first is heard at once: who is stuck can be killed only by the pid that it tells.
  if (std::exchange(introduced_, true))
    parts_.channel.send_quietly(0, message);
  else
    parts_.channel.send(0, message);
}

message::Beat Participant::beat_now(Clock::time_point now) const {
  message::Beat beat{.at_ns = std::chrono::nanoseconds(now.time_since_epoch()).count(),
                     .host = parts_.host,
                     .pid = ::getpid(),
                     .step = parts_.progress.step(),
                     .phase = parts_.progress.phase(),
                     .phase_s = in_seconds(parts_.progress.in_phase()),
                     .state = state(),
                     .evaluating_step = parts_.progress.evaluated_step(),
                     .saving_step = parts_.progress.saved_step(),
                     .saving_share = {},
                     .best_eval_loss = {},
                     .collective = {},
                     .launched = {}};
  if (beat.saving_step) beat.saving_share = parts_.progress.written_share();
  if (const auto best = parts_.progress.best_evaluation()) beat.best_eval_loss = best->loss;
  if (parts_.ledger == nullptr) return beat;
  if (const LedgerEntry entry = parts_.ledger->current(); entry.sequence != 0)
    beat.collective = status_of(entry);
  if (const auto newest = parts_.ledger->find(parts_.ledger->newest()))
    beat.launched = {newest->sequence, newest->digest};
  return beat;
}

RunState Participant::state() const {
  const Phase phase = parts_.progress.phase();
  if (phase == Phase::ended) return RunState::ended;
  if (phase == Phase::starting) return RunState::starting;
  switch (parts_.gate.held()) {
    case Held::pause:
      return RunState::paused;
    case Held::end:
      return RunState::ending;
    case Held::lost:
      return RunState::recovering;
    default:
      break;
  }
  if (phase == Phase::evaluation) return RunState::evaluating;
  if (phase == Phase::saving) return RunState::saving;
  return RunState::running;
}

void Participant::ask_to_stop(const std::string& reason, bool resumable) {
  answer(message::Stop{reason, resumable});
}

void Participant::say_goodbye() {
  parts_.channel.leave(encoded(message::ToRankZero(message::Bye{})));
}

void Participant::report_recovery_state(const RecoveryState& standing, std::uint32_t generation) {
  const HeldShare held = parts_.steerable.held_share();
  answer(message::Standing{.generation = generation,
                           .step = standing.step,
                           .reached = standing.reached,
                           .share = held.share,
                           .copied = held.copied,
                           .shares = held.of,
                           .shared = held.shared,
                           .paused = standing.paused,
                           .finished = standing.finished,
                           .save = standing.save.has_value(),
                           .tag = standing.save.value_or(""),
                           .commits = standing.commits,
                           .applied = standing.applied,
                           .begun = standing.begun,
                           .refused = standing.refused,
                           .refusal = standing.refusal,
                           .sequence = parts_.ledger != nullptr ? parts_.ledger->newest() : 0,
                           .commit = commit_,
                           .ticket = ticket_,
                           .order = order_});
}

message::HandOver Participant::hand_over() const {
  return {
      {committed_.begin(), committed_.end()}, {applied_.begin(), applied_.end()}, commit_, ticket_, order_};
}

void Participant::take_over(message::HandOver handed) {
  for (Committed& one : handed.committed)
    if (auto committed = checked(std::move(one))) committed_.push_back(*std::move(committed));
  for (message::Applied& one : handed.applied) applied_.push_back(std::move(one));
  if (handed.commit)
    if (auto commit = checked(*std::move(handed.commit))) commit_ = *std::move(commit);
  ticket_ = handed.ticket;
  order_ = handed.order;
}

void Participant::rejoin(const message::Rejoin& verdict, int local_ranks) {
  open_.reset();
  meeting_ = false;
  introduced_ = false;
  overdue_.clear();
  if (verdict.commit && (!commit_ || verdict.commit->ticket > commit_->ticket))
    if (auto commit = checked(*verdict.commit)) take_commit(*std::move(commit));  // was checked when prepared
  const int rank = parts_.channel.rank();
  Rejoin rejoin;
  rejoin.step = verdict.step;
  rejoin.source = verdict.source;
  rejoin.level = !verdict.behind.empty();
  rejoin.behind = std::find(verdict.behind.begin(), verdict.behind.end(), rank) != verdict.behind.end();
  rejoin.shared = verdict.shared;
  rejoin.checkpoint = verdict.checkpoint;
  rejoin.left = verdict.left;
  rejoin.save = verdict.save;
  rejoin.tag = verdict.tag;
  rejoin.generation = verdict.generation;
  rejoin.sequence = verdict.sequence;
  rejoin.local_ranks = local_ranks;
  rejoin.refused = verdict.refused;
  rejoin.refusal = verdict.refusal;
  rejoin.applied = verdict.applied;
  parts_.gate.resume(rejoin, verdict.commits, verdict.begun, verdict.paused, verdict.finished);
  for (message::Applied applied : applied_) {
    if (rank != 0) leave_to_rank_zero(applied);
    answer(std::move(applied));
  }
}

}  // namespace footplate
