#include "runtime/control/proposal.h"

#include <fmt/format.h>

#include <utility>

#include "runtime/watch/event_parts.h"

namespace footplate {

void Proposal::propose(Order order) {
  order_ = std::move(order);
  id_ = 0;
  aborted_ = false;
}

void Proposal::tick(Clock::time_point now) {
  if (!order_ || id_ != 0) return;
  if (std::exchange(aborted_, false)) next_try_ = now + parts_.pause;
  if (now < next_try_) return;
  id_ = parts_.coordinator.submit_own(*order_, now);
}

void Proposal::note(const OrderReport& report) {
  if (id_ == 0 || report.id != id_ || !is_final(report.state)) return;
  id_ = 0;
  // Somebody may have let the run go on by hand.
  aborted_ = report.state == OrderState::aborted && parts_.is_paused();
  if (aborted_) return;
  if (report.state == OrderState::refused)
    parts_.report(warning_of(
        WarningKind::memory,
        fmt::format(
            "the run stays paused: what was to let it go on is refused: {}; run.resume() tries the step "
            "again, train.micro_batch = N with fewer sequences at once",
            report.error)));
  order_.reset();
}

}  // namespace footplate
