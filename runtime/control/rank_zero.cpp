#include "runtime/control/rank_zero.h"

#include <algorithm>
#include <string>
#include <utility>

#include "protocol/overloaded.h"
#include "runtime/watch/event_parts.h"

namespace footplate {

RankZero::RankZero(Parts parts, std::uint64_t first_order_id)
    : parts_(parts),
      status_(parts.options.channel->world_size(), parts.options.times, Clock::now()),
      coordinator_({parts.options.schema, status_, parts.options.channel->world_size(),
                    [this](const message::ToRanks& message) { send_all(message); },
                    [this](Report report) { report_order(std::move(report)); }, parts.options.times,
                    first_order_id}),
      console_({parts.options, parts.gate, parts.participant, status_, coordinator_, parts.board,
                [this](ConsoleMessage message) { handle(std::move(message)); },
                [this](Warning warning) { report(std::move(warning)); }}),
      stuck_({status_, *parts.options.channel, [this](const message::ToRanks& message) { send_all(message); },
              [this](RankChange change) { report(std::move(change)); }, parts.options.before_exit}),
      repair_({status_, coordinator_, *parts.options.channel}),
      replacement_({parts.options.world, *parts.options.channel, parts.gate, coordinator_, parts.numbers,
                    parts.options.run.started, parts.options.run.host,
                    [this](EventData event) { report(std::move(event)); }}),
      proposal_({coordinator_,
                 [progress = parts.options.progress] { return progress->phase() == Phase::paused; },
                 parts.options.times.stop_retry, [this](EventData event) { report(std::move(event)); }}),
      advice_({parts.options.schema, status_, parts.options.ledger, parts.options.channel->world_size(),
               first_order_id,
               [this](Order order) { return coordinator_.submit_own(std::move(order), Clock::now()); },
               [this](Warning warning) { report(std::move(warning)); }}) {
  const Settings settings = parts_.gate.settings();
  follow_changed(all_settings(settings));
  watch_.emplace(watch_parts(), settings);
  follow(settings);
  console_.renew_status();
  console_.start();
}

WorldWatch::Parts RankZero::watch_parts() {
  const ControlOptions& options = parts_.options;
  return {status_,
          *options.channel,
          options.ledger,
          options.times,
          advice_,
          options.world != nullptr ? &timeouts_so_far_ : nullptr,
          [this](Report told) { report(std::move(told)); },
          [this](const message::ToRanks& message) { send_all(message); }};
}

void RankZero::send_all(const message::ToRanks& message) {
  parts_.options.channel->send_to_all(encoded(message));
}

void RankZero::follow(const Settings& settings) {
  stuck_.follow(settings);
  repair_.follow(settings);
  replacement_.follow(settings);
  watch_->follow(settings);
}

void RankZero::follow_changed(const SettingsUpdate& changed) {
  advice_.follow(changed);
  const Settings now = parts_.gate.settings();
  if (changed.settings.contains("train.steps")) console_.set_steps(now.integer("train.steps"));
  const auto limit = [&](const char* name, Clock::duration& kept) {
    if (changed.settings.contains(name))
      kept = std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(now.number(name)));
  };
  limit("run.time_limit", time_limit_);
  limit("run.pause_limit", pause_limit_);
}

void RankZero::report_order(Report told) {
  const auto* event = std::get_if<EventData>(&told);
  const bool of_rank = event != nullptr && topic_of(*event) == Topic::rank;
  if (event != nullptr)
    if (const auto* warning = std::get_if<Warning>(event);
        warning != nullptr && warning->kind == WarningKind::state_hash)
      repair_.found(*warning);
  report(std::move(told));
  if (of_rank) console_.renew_status();  // now, not with the next heartbeat
}

void RankZero::report(Report told, WallTime time, std::uint64_t hold) {
  if (const auto* changed = std::get_if<SettingsUpdate>(&told)) follow_changed(*changed);
  if (const auto* event = std::get_if<EventData>(&told)) {
    note(*event);
    if (parts_.options.observer) parts_.options.observer(*event);
  }
  console_.tell(std::move(told), time, hold);
}

void RankZero::note(const EventData& event) {
  const auto tell = [this](const auto& report) {
    repair_.note(report);
    replacement_.note(report);
  };
  if (const auto* order = std::get_if<OrderReport>(&event)) {
    tell(*order);
    proposal_.note(*order);
  }
  if (const auto* call = std::get_if<CallReport>(&event)) tell(*call);
}

void RankZero::handle(int source, const message::ToRankZero& message, Clock::time_point now) {
  coordinator_.handle(source, message, now);
  watch_->handle(source, message, now);
}

void RankZero::handle(ConsoleMessage message) {
  const auto now = Clock::now();
  std::visit(Overloaded{[&](SubmitOrder& submitted) { coordinator_.submit(std::move(submitted), now); },
                        [&](const WithdrawOrder& withdrawn) { coordinator_.withdraw(withdrawn, now); },
                        [&](const CancelCall& call) { coordinator_.cancel(call.order, call.call); },
                        [&](const CancelEvaluation&) {
                          if (const auto step = parts_.options.progress->evaluation_under_way())
                            coordinator_.cancel_evaluation(*step);
                        },
                        [&](const AskStatus&) { console_.ask(now); },
                        [&](const AskRanks& asked) { ask_ranks(asked, now); },
                        [&](const DropRank& dropped) { stuck_.drop(dropped.rank, dropped.user, now); },
                        [&](const FollowRun& follows) { console_.follow(follows.on); },
                        [&](PublishEvent& published) { report(std::move(published.data)); },
                        [&](SyncTopics& sync) { parts_.gate.set_sync(std::move(sync)); },
                        [&](const ReleaseHold& released) { parts_.gate.release(released.hold); }},
             message);
}

void RankZero::ask_ranks(const AskRanks& asked, Clock::time_point now) {
  if (auto done = watch_->ask(asked, now); !done)
    report(warning_of(WarningKind::console, done.error().message));
}

CollectiveTimeouts::Due RankZero::tick(Clock::time_point now) {
  watch_->tick_inquiries(now);
  keep_limits(now);
  coordinator_.tick(now);
  stuck_.tick(now);
  replacement_.tick(now);
  repair_.tick(now);
  watch_->tick(now);
  proposal_.tick(now);
  return watch_->tick_timeouts(now);
}

void RankZero::keep_limits(Clock::time_point now) {
  const Progress& progress = *parts_.options.progress;
  if (time_limit_.count() > 0 && now >= parts_.options.process_start + time_limit_)
    coordinator_.stop(std::string(kEndedTimeLimit), /*resumable=*/true, now);
  else if (pause_limit_.count() > 0 && progress.phase() == Phase::paused &&
           progress.in_phase() >= pause_limit_)
    coordinator_.stop(std::string(kEndedPauseLimit), /*resumable=*/true, now);
}

void RankZero::tick_recovery(Clock::time_point now) {
  watch_->tick_inquiries(now);
  coordinator_.tick(now);
  watch_recovery(now);
}

void RankZero::watch_recovery(Clock::time_point now) {
  if (!recovery_) return;
  const std::vector<int> awaited = recovery_->awaited();
  if (awaited.empty() || now - standing_since_ < parts_.options.times.missing) return;
  const std::string text = "recovery waits for " + status_.whom(awaited, now);
  status_.note("recovery", text);
  if (!std::exchange(recovery_told_, true)) {
    Warning warning = warning_of(WarningKind::recovery, text);
    warning.ranks = awaited;
    report(std::move(warning));
  }
  stuck_.tick_recovery(awaited, now - standing_since_, now);
}

RankZero::Clock::time_point RankZero::next_tick() const {
  return std::min({coordinator_.next_tick(), watch_->next_tick(), console_.next_pump()});
}

bool RankZero::awaiting() const {
  return coordinator_.awaiting_outcome() || watch_->awaiting();
}

void RankZero::change_world(const Membership& before, const Membership& after, Clock::time_point now) {
  status_.world_changed(numbers_before(before, after), now);
  repair_.change_world(numbers_before(before, after));
  advice_.world_changed(after.world_size());
  stuck_.change_world();
  watch_.emplace(watch_parts(), parts_.gate.settings());
}

void RankZero::await_standing(const Membership& members) {
  recovery_.emplace(members.world_size(), members.generation, repair_.odd());
  standing_since_ = Clock::now();
  recovery_told_ = false;
}

std::optional<message::Rejoin> RankZero::add_standing(int source, const message::Standing& standing) {
  if (!recovery_) return std::nullopt;
  recovery_->add(source, standing);
  auto verdict = recovery_->verdict([this](std::int64_t at_most) { return newest_checkpoint(at_most); });
  if (verdict) recovery_.reset();
  return verdict;
}

/// train.epochs has been turned into train.steps from where the start began, with the settings of then.
Result<CheckpointAt> RankZero::newest_checkpoint(std::int64_t at_most) const {
  if (parts_.gate.settings().integer("train.epochs") > 0)
    return fail(ErrorKind::refused, "with train.epochs only a new start goes back to a checkpoint");
  if (!parts_.options.newest_checkpoint) return fail(ErrorKind::refused, "there are no checkpoints");
  return parts_.options.newest_checkpoint(at_most);
}

void RankZero::go_on(const message::Rejoin& verdict, const RecoveryStory& story, Clock::time_point now) {
  const Membership& members = parts_.options.world->members();
  if (recorded_) inherit_orders(*std::exchange(recorded_, std::nullopt));
  coordinator_.continue_from(verdict.ticket, verdict.order);
  if (!verdict.checkpoint.empty()) {
    coordinator_.go_back(verdict.left, verdict.step);
    repair_.go_back(verdict.step);
  }
  coordinator_.go_on(members.world_size(), verdict.commits, now);
  for (const char* of_before : {"recovery", "collective", "different"}) status_.note(of_before, "");
  if (!verdict.checkpoint.empty() || (!verdict.behind.empty() && !verdict.shared)) repair_.level();
  note_missing();
  RecoveryStory told = story;
  if (parts_.options.why_lost)
    told.why_lost = parts_.options.why_lost(origins_lost_between(story.before, members));
  RankChange change = recovery_report(told, members, verdict, now);
  if (change.state != RankChangeKind::joined) report(std::move(change));
  console_.renew_status();
}

void RankZero::tell_joined(const RecoveryStory& story, const message::Rejoin& verdict,
                           Clock::time_point now) {
  const Membership& members = parts_.options.world->members();
  RecoveryStory of_joined = story;  // who was lost since then has been told of
  std::erase_if(of_joined.before.origins, [&](int origin) {
    return std::find(members.origins.begin(), members.origins.end(), origin) == members.origins.end();
  });
  RankChange change = recovery_report(of_joined, members, verdict, now);
  if (change.state == RankChangeKind::joined) report(std::move(change));
}

void RankZero::note_missing() {
  const int ranks = parts_.options.channel->world_size();
  const int wanted = parts_.numbers.wanted;
  status_.note("missing", ranks >= wanted ? ""
                                          : std::to_string(ranks) + " of " + std::to_string(wanted) +
                                                " ranks: the others were lost, and training goes on");
}

/// Those that the journal lacks aren't the youngest ones: one for a later step is applied, and written, after
/// younger ones. What was refused as it was applied isn't written, and was told of.
void RankZero::inherit_orders(const std::set<std::uint64_t>& recorded) {
  for (const Committed& committed : parts_.gate.forecast().pending) coordinator_.inherit(committed);
  const std::uint64_t newest = recorded.empty() ? 0 : *recorded.rbegin();
  for (const Committed& committed : parts_.participant.committed()) {
    const std::uint64_t id = committed.order.id;
    const bool is_known = recorded.contains(id) || (id < newest && parts_.participant.was_refused(id));
    if (!is_known && !parts_.gate.is_pending(id)) coordinator_.inherit(committed);
  }
}

}  // namespace footplate
