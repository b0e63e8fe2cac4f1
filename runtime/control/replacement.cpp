#include "runtime/control/replacement.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "runtime/schema/actions.h"
#include "runtime/watch/event_parts.h"

namespace footplate {
namespace {

/// After a failure, doubled with each further one.
constexpr std::chrono::seconds kFirstPause{1};
constexpr int kPauseDoublings = 6;

std::chrono::seconds pause_after(int failures) {
  return kFirstPause * (1 << std::min(failures, kPauseDoublings));
}

}  // namespace

void Replacement::tick(Clock::time_point now) {
  if (parts_.world == nullptr) return;
  const int missing = parts_.numbers.wanted - parts_.channel.world_size();
  switch (parts_.world->joining_rank()) {
    case JoiningRank::none:
      return invite(missing, now);
    case JoiningRank::coming:
      return;
    case JoiningRank::ready:
      if (wanted_ && missing > 0) return order_admission(now);
      return parts_.world->dismiss();
    case JoiningRank::failed:
      return try_later(now);
  }
}

void Replacement::invite(int missing, Clock::time_point now) {
  if (!wanted_ || missing <= 0 || now < next_try_ || parts_.gate.held() == Held::end) return;
  parts_.report(change_of(
      RankChangeKind::invited,
      fmt::format("{} of {} ranks missing: another process is being started on host {} (comm.replace)",
                  missing, parts_.numbers.wanted, parts_.host)));
  parts_.world->invite(parts_.numbers.next++, parts_.gate.settings().to_json().dump());
}

void Replacement::try_later(Clock::time_point now) {
  const auto pause = pause_after(failures_++);
  next_try_ = now + pause;
  parts_.report(warning_of(
      WarningKind::replacement,
      fmt::format("no replacement: {}; tried again in {} s", parts_.world->guest_failure(), pause.count())));
  parts_.world->dismiss();
}

void Replacement::order_admission(Clock::time_point now) {
  if (std::exchange(refused_, false)) next_order_ = now + pause_after(refusals_++);
  if (order_ != 0 || now < next_order_ || parts_.gate.held() == Held::end) return;
  Order order;
  order.source = "-- comm.replace: a process is ready";
  order.calls = {{kAdmit, {{"start", parts_.start}}}};
  order_ = parts_.coordinator.submit_own(std::move(order), now);
}

void Replacement::note(const OrderReport& report) {
  if (order_ == 0 || report.id != order_ || !is_final(report.state) || report.state == OrderState::applied)
    return;
  order_ = 0;
  refused_ = true;
}

void Replacement::note(const CallReport& report) {
  if (order_ == 0 || report.order != order_ || report.state != CallState::failed) return;
  order_ = 0;
  refused_ = true;
}

}  // namespace footplate
