#include "runtime/watch/collective_timeouts.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "runtime/base/progress.h"
#include "runtime/watch/event_parts.h"

namespace footplate {
namespace {

/// Rebuilds for one and the same step, in a row; what hangs then isn't mended by another.
constexpr int kMostAtStep = 3;
/// Each rebuild doubles what the next one waits, so often at most, until so many steps went well.
constexpr int kMostDoublings = 3;
constexpr std::int64_t kCalm = 100;

bool is_training(Phase phase) {
  return phase == Phase::data || phase == Phase::forward || phase == Phase::backward ||
         phase == Phase::reduce || phase == Phase::optimizer;
}

}  // namespace

void CollectiveTimeouts::follow(const Settings& settings) {
  on_timeout_ = choice_of<OnTimeout>(settings, "comm.on_timeout");
  eval_on_timeout_ = choice_of<OnTimeout>(settings, "eval.on_timeout");
}

/// Collectives of other phases (a start, a save) have no policy: nothing is lost by waiting for a slow disk.
void CollectiveTimeouts::hangs(const Inquiry::Verdict& verdict, Clock::time_point now) {
  if (open_ || verdict.limit_s <= 0 || !verdict.phase) return;
  const bool evaluation = verdict.phase == Phase::evaluation;
  if (!evaluation && !is_training(*verdict.phase)) return;
  const OnTimeout policy = evaluation ? eval_on_timeout_ : on_timeout_;
  if (policy == OnTimeout::wait) return;
  const auto limit =
      std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(verdict.limit_s));
  if (verdict.step > memory_.step + kCalm) memory_.doublings = 0;
  Open open;
  open.sequence = verdict.sequence;
  open.step = verdict.step;
  open.evaluation = evaluation;
  open.stop = policy == OnTimeout::stop;
  open.limit = limit;
  open.text = verdict.finding;
  open.due = evaluation || open.stop ? now : now + limit * ((1 << memory_.doublings) - 1);
  if (!evaluation && !open.stop && verdict.step == memory_.step && memory_.at_step >= kMostAtStep) {
    open.stop = true;
    open.text += fmt::format("; {} rebuilds at this step didn't help", memory_.at_step);
  } else if (open.stop) {
    open.text += fmt::format("; {} is \"stop\"", evaluation ? "eval.on_timeout" : "comm.on_timeout");
  }
  open_ = std::move(open);
}

void CollectiveTimeouts::over(std::uint64_t sequence) {
  if (!open_ || open_->sequence != sequence) return;
  take_back();
  open_.reset();
}

void CollectiveTimeouts::handle(int source, const message::Ready& ready) {
  if (open_ && open_->asked && ready.ticket == memory_.tickets) open_->ready.insert(source);
}

CollectiveTimeouts::Due CollectiveTimeouts::tick(Clock::time_point now) {
  if (!open_) return Due::nothing;
  const bool all_ready = static_cast<int>(open_->ready.size()) == parts_.world_size;
  if (open_->asked && open_->stop && (all_ready || now >= open_->until)) {
    open_.reset();
    return Due::stop;
  }
  if (open_->asked && all_ready) {
    note(*std::exchange(open_, std::nullopt));
    return Due::rebuild;
  }
  // Whoever comes back has as long as anybody else.
  if (!open_->stop && (parts_.status.anyone_silent() || (open_->asked && now >= open_->until))) {
    take_back();
    open_->due = std::max(open_->due, now + open_->limit);
    return Due::nothing;
  }
  if (!open_->asked && now >= open_->due) ask(now);
  return Due::nothing;
}

void CollectiveTimeouts::ask(Clock::time_point now) {
  open_->asked = true;
  open_->until = now + parts_.times.inquiry;
  open_->ready.clear();
  parts_.send_all(message::Remedy{++memory_.tickets, open_->stop, open_->text});
}

void CollectiveTimeouts::take_back() {
  if (!std::exchange(open_->asked, false)) return;
  parts_.send_all(message::Remedy{++memory_.tickets, false, ""});
}

void CollectiveTimeouts::note(const Open& done) {
  if (!done.evaluation) {
    memory_.at_step = done.step == memory_.step ? memory_.at_step + 1 : 1;
    memory_.step = done.step;
    memory_.doublings = std::min(memory_.doublings + 1, kMostDoublings);
  }
  Warning warning =
      warning_at(WarningKind::timeout, done.step,
                 fmt::format("{}: {}", done.text,
                             done.evaluation ? "the evaluation is skipped"
                                             : "communicators are rebuilt, the step is done again"));
  warning.action = done.evaluation ? "skip" : "rebuild";
  parts_.warn(std::move(warning));
}

CollectiveTimeouts::Clock::time_point CollectiveTimeouts::next_tick() const {
  if (!open_) return Clock::time_point::max();
  return open_->asked ? open_->until : open_->due;
}

}  // namespace footplate
