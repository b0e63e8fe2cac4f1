// A process takes the place of one that was lost: started beside training, let in at an agreed step.
#include <fmt/format.h>

#include <algorithm>

#include "runtime/control/control_impl.h"
#include "runtime/schema/actions.h"
#include "runtime/watch/messages.h"

namespace footplate {
namespace {

/// After a failure, doubled with each further one.
constexpr std::chrono::seconds kFirstPause{1};
constexpr int kPauseDoublings = 6;

}  // namespace

void Control::Impl::look_for_replacement(Clock::time_point now) {
  World* world = options_.world;
  if (world == nullptr) return;
  const int missing = wanted_ - options_.channel->world_size();
  switch (world->joining_rank()) {
    case JoiningRank::none:
      if (!replace_ || missing <= 0 || now < next_try_ || gate_.held() == footplate::Held::end) return;
      report("rank",
             {{"state", "invited"},
              {"text", fmt::format("{} of {} ranks missing: another process is being started (comm.replace)",
                                   missing, wanted_)}},
             std::chrono::system_clock::now());
      world->invite(next_number_++, gate_.settings().to_json().dump());
      return;
    case JoiningRank::coming:
      return;
    case JoiningRank::ready:
      if (replace_ && missing > 0) return order_admission(now);
      world->dismiss();
      return;
    case JoiningRank::failed:
      const auto pause = kFirstPause * (1 << std::min(failures_++, kPauseDoublings));
      next_try_ = now + pause;
      report("warn",
             {{"kind", "replacement"},
              {"text", fmt::format("no replacement: {}; tried again in {} s", world->guest_failure(),
                                   pause.count())}},
             std::chrono::system_clock::now());
      world->dismiss();
      return;
  }
}

void Control::Impl::order_admission(Clock::time_point now) {
  if (admission_ != 0) return;
  Order order;
  order.source = "-- comm.replace: a process is ready";
  order.calls = {{kAdmit, {{"start", options_.run.started}}}};
  admission_ = coordinator_->submit_own(std::move(order), now);
}

void Control::Impl::note_admission(const std::string& state) {
  if (state == "refused" || state == "aborted" || state == "withdrawn" || state == "failed") admission_ = 0;
}

void Control::Impl::admit(Clock::time_point now) {
  admission_due_ = false;
  handle_messages(now);  // as recover() does
  handle_gate();
  handle_messages(now);
  admission_ = 0;
  if (coordinator_) coordinator_->suspend();
  const Membership before = options_.world->members();
  recovering_since_ = now;
  whole_world_ = before;
  recovering_ = true;
  told_standing_ = false;
  const auto grown =
      in_time([this] { return options_.world->grow(coordinator_ ? welcome().dump() : std::string()); });
  if (!grown && grown.error().kind == ErrorKind::lost) return;  // those who are there find together again
  if (!grown) return give_up("a replacement couldn't join: " + grown.error().message);
  failures_ = 0;
  world_changed(before, now);
}

Json Control::Impl::welcome() const {
  const Forecast forecast = gate_.forecast();
  const auto [applied, last_applied] = gate_.applied();
  Json pending = Json::array();
  for (const Committed& committed : forecast.pending) pending.push_back(Participant::to_json(committed));
  const std::chrono::duration<double> ran = Clock::now() - options_.process_start;
  return {{"settings", forecast.settings.to_json()},
          {"at_start", kept_at_start()},
          {"store", gate_.store()},
          {"pending", std::move(pending)},
          {"applied", applied},
          {"last_applied", last_applied},
          {"participant", participant_->hand_over()},
          {"wanted", wanted_},
          {"recoveries", options_.recoveries ? options_.recoveries() : 0},
          {"started", options_.run.started},
          {"ran_s", ran.count()}};
}

void Control::Impl::join_run(const Json& welcome) {
  joining_ = recovering_ = true;
  recovering_since_ = Clock::now();
  whole_world_ = options_.world->members();
  wanted_ = welcome.at("wanted");
  next_number_ = *std::max_element(whole_world_.origins.begin(), whole_world_.origins.end()) + 1;
  participant_->take_over(welcome.at("participant"));
  for (const Json& one : welcome.at("pending"))
    if (auto committed = participant_->read_committed(one)) gate_.commit(*std::move(committed));
  gate_.join(welcome.at("applied"), welcome.at("last_applied"));
}

}  // namespace footplate
