#include "runtime/control/rank_recovery.h"

#include <algorithm>
#include <set>
#include <utility>

#include "runtime/base/deadline_timer.h"

namespace footplate {
namespace {

constexpr auto kOnLossStop = "a rank was lost, and comm.on_loss is \"stop\"";

/// What a rank that is about to end passes on meanwhile; rank 0 waits as long for the answers of all.
constexpr std::chrono::seconds kPassesOn{1};

int largest_origin(const Membership& members) {
  return *std::max_element(members.origins.begin(), members.origins.end());
}

}  // namespace

RankRecovery::RankRecovery(Parts parts) : parts_(std::move(parts)), world_(parts_.options.world) {
  numbers_.wanted = numbers_.next = parts_.options.channel->world_size();
}

void RankRecovery::join_run(const Welcome& welcome) {
  joining_ = under_way_ = true;
  story_.since = Clock::now();
  story_.before = world_->members();
  numbers_.wanted = welcome.wanted;
  numbers_.next = largest_origin(story_.before) + 1;
  parts_.participant.take_over(welcome.participant);
  for (const Committed& one : welcome.pending)
    if (auto committed = parts_.participant.checked(one)) parts_.gate.commit(*std::move(committed));
  parts_.gate.join(welcome.applied, welcome.last_applied);
}

void RankRecovery::recover(Clock::time_point now) {
  rebuild_due_ = false;
  alone_since_.reset();
  if (joining_) return parts_.give_up("a rank was lost before this one was level");
  if (ends_by_remedy_) return parts_.give_up(remedy_);
  if (on_loss_ == OnLoss::stop && remedy_.empty()) return parts_.give_up(kOnLossStop);
  // What has been said before counts (a commit that this rank has sent itself, an order applied here), and
  // is over with this world: no message to itself may reach the next one.
  parts_.gate.hold_for_recovery();
  if (!parts_.catch_up(now)) return;
  const Membership before = world_->members();
  if (!under_way_) {
    story_.since = now;
    story_.before = before;
  }
  under_way_ = true;
  told_standing_ = admission_due_ = false;
  if (parts_.rank_zero) {
    parts_.rank_zero->suspend();
    parts_.rank_zero->replacement().forget_order();
  }
  if (auto rebuilt = in_time([this] { return world_->rebuild(); }); !rebuilt)
    return parts_.give_up("recovery failed: " + rebuilt.error().message);
  if (on_loss_ == OnLoss::stop && !lost_between(before, world_->members()).empty())
    return parts_.give_up(kOnLossStop);
  world_changed(before, now);
}

void RankRecovery::admit(Clock::time_point now) {
  admission_due_ = false;
  alone_since_.reset();
  parts_.catch_up(now);  // as recover() does
  const Membership before = world_->members();
  story_.since = now;
  story_.before = before;
  under_way_ = true;
  told_standing_ = false;
  if (parts_.rank_zero) {
    parts_.rank_zero->suspend();
    parts_.rank_zero->replacement().forget_order();
  }
  const auto grown =
      in_time([this] { return world_->grow(parts_.rank_zero ? to_text(welcome()) : std::string()); });
  if (!grown && grown.error().kind == ErrorKind::lost) return;  // those who are there recover
  if (!grown) return parts_.give_up("a replacement couldn't join: " + grown.error().message);
  if (parts_.rank_zero) parts_.rank_zero->replacement().succeeded();
  world_changed(before, now);
}

Result<void> RankRecovery::in_time(const std::function<Result<void>()>& change) {
  const DeadlineTimer fuse(parts_.options.times.rebuild, [this] {
    if (parts_.options.give_up)
      parts_.options.give_up("recovery failed: the ranks that are left didn't find together in time");
  });
  return change();
}

void RankRecovery::world_changed(const Membership& before, Clock::time_point now) {
  const Membership& after = world_->members();
  numbers_.next = std::max(numbers_.next, largest_origin(after) + 1);
  const bool leads = after.rank == 0 && !parts_.rank_zero;
  std::set<std::uint64_t> recorded;
  if (parts_.options.on_world) recorded = parts_.options.on_world(after, leads);
  if (after.rank != 0) return;
  if (leads) {
    const std::uint64_t free = recorded.empty() ? 1 : *recorded.rbegin() + 1;
    parts_.lead(std::max(parts_.options.first_order_id, free));
    parts_.rank_zero->suspend();
    parts_.rank_zero->take_the_lead(std::move(recorded));
  } else {
    parts_.rank_zero->change_world(before, after, now);
  }
  parts_.rank_zero->await_standing(after);
}

void RankRecovery::tick() {
  if (told_standing_) return;
  const auto standing = parts_.gate.recovery_state();
  if (!standing) return;
  told_standing_ = true;
  parts_.tell_events();  // what was applied on the way here is told first
  parts_.participant.report_recovery_state(*standing, world_->members().generation);
}

bool RankRecovery::has_lone_loss(Clock::time_point now) {
  if (world_ == nullptr || !parts_.gate.recovery_state()) {
    alone_since_.reset();
    return false;
  }
  if (!alone_since_) alone_since_ = now;
  return now - *alone_since_ >= parts_.options.times.lone_loss;
}

void RankRecovery::handle(int source, const message::Standing& standing, Clock::time_point now) {
  if (!parts_.rank_zero) return;
  const auto verdict = parts_.rank_zero->add_standing(source, standing);
  if (!verdict) return;
  parts_.options.channel->send_to_others(encoded(message::ToRanks(*verdict)));
  handle(*verdict);
  if (!under_way_) parts_.rank_zero->go_on(*verdict, story_, now);
}

void RankRecovery::handle(const message::Rejoin& verdict) {
  if (!under_way_ || verdict.generation != world_->members().generation) return;
  if (!verdict.impossible.empty()) return parts_.give_up("recovery failed: " + verdict.impossible);
  under_way_ = false;
  story_.remedied = std::exchange(remedy_, "");
  if (!lost_between(world_->members(), story_.before).empty()) admission_ = {story_, verdict};
  if (std::exchange(joining_, false) && parts_.options.on_world)
    parts_.options.on_world(world_->members(), /*leads=*/false);
  parts_.gone_on();
  parts_.participant.rejoin(verdict, world_->members().local_ranks);
}

void RankRecovery::all_are_level(Clock::time_point now) {
  const auto admission = std::exchange(admission_, std::nullopt);
  if (admission && parts_.rank_zero) parts_.rank_zero->tell_joined(admission->story, admission->verdict, now);
}

/// Every rank, before rank 0 does anything: what the others see of it must not look like a loss.
void RankRecovery::handle(const message::Remedy& remedy) {
  remedy_ = remedy.text;
  ends_by_remedy_ = remedy.stop;
  parts_.gate.set_interruption(remedy_);
  MessageChannel& channel = *parts_.options.channel;
  channel.send(0, encoded(message::ToRankZero(message::Ready{remedy.ticket})));
  // Where ranks pass messages on, one that ended at once would take those of others with it.
  if (ends_by_remedy_ && channel.rank() != 0)
    ends_at_ = Clock::now() + (channel.is_direct() ? Clock::duration(0) : Clock::duration(kPassesOn));
  end_if_due(Clock::now());
}

void RankRecovery::end_if_due(Clock::time_point now) {
  if (now < ends_at_) return;
  ends_at_ = Clock::time_point::max();
  parts_.give_up(remedy_);
}

Welcome RankRecovery::welcome() const {
  const ControlOptions& options = parts_.options;
  Forecast forecast = parts_.gate.forecast();
  const auto [applied, last_applied] = parts_.gate.applied();
  const std::chrono::duration<double> ran = Clock::now() - options.process_start;
  return {.settings = forecast.settings.to_json(),
          .at_start = kept_at_start(options),
          .store = parts_.gate.store(),
          .pending = std::move(forecast.pending),
          .applied = applied,
          .last_applied = last_applied,
          .participant = parts_.participant.hand_over(),
          .wanted = numbers_.wanted,
          .recoveries = options.recoveries ? options.recoveries() : 0,
          .started = options.run.started,
          .ran_s = ran.count()};
}

}  // namespace footplate
