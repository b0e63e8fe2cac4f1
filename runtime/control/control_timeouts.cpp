// What follows where collectives hang though all ranks live, and whom a recovery waits for.
#include <fmt/format.h>

#include "runtime/control/control_impl.h"
#include "runtime/watch/messages.h"

namespace footplate {

/// Every rank, before rank 0 does anything: what the others see of it must not look like a loss.
void Control::Impl::on_remedy(const Json& message) {
  remedy_ = message.at("text");
  ends_by_remedy_ = message.at("stop");
  gate_.set_interruption(remedy_);
  options_.channel->send(0, {{"t", message::kReady}, {"ticket", message.at("ticket")}});
  if (ends_by_remedy_ && options_.channel->rank() != 0) give_up(remedy_);
}

void Control::Impl::tick_timeouts(Clock::time_point now) {
  switch (collective_timeouts_->tick(now)) {
    case CollectiveTimeouts::Due::nothing:
      break;
    case CollectiveTimeouts::Due::rebuild:
      rebuild_due_ = true;
      break;
    case CollectiveTimeouts::Due::stop:
      give_up(remedy_);
      break;
  }
}

/// A training thread that doesn't come to stand holds all others up: it is named, and past the hard limit
/// killed.
void Control::Impl::watch_recovery(Clock::time_point now) {
  if (!recovery_) return;
  const std::vector<int> awaited = recovery_->awaited();
  if (awaited.empty() || now - standing_since_ < options_.times.missing) return;
  const std::string text = "recovery waits for " + run_status_->whom(awaited, now);
  run_status_->note("recovery", text);
  if (!std::exchange(recovery_told_, true))
    report("warn", {{"kind", "recovery"}, {"ranks", awaited}, {"text", text}},
           std::chrono::system_clock::now());
  if (hard_limit_.count() <= 0 || now - standing_since_ < hard_limit_) return;
  for (const int rank : awaited) {
    const RunStatus::Stuck stuck = run_status_->who(rank, now);
    if (run_status_->is_saving(rank) || stuck.pid == 0 || !killed_.insert(stuck.pid).second) continue;
    kill(stuck, fmt::format("past comm.hard_limit_s ({:.3g} s)", hard_limit_.count()));
  }
}

}  // namespace footplate
