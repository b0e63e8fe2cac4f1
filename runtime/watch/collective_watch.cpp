#include "runtime/watch/collective_watch.h"

#include <fmt/format.h>

#include <utility>

#include "runtime/watch/event_parts.h"

namespace footplate {

void CollectiveWatch::handle(int source, const message::Overdue& overdue, Clock::time_point now) {
  if (parts_.advice != nullptr) parts_.advice->handle(source, overdue, now);
  if (overdue.over)
    is_over(overdue);
  else
    inquire({overdue.sequence, overdue.limit_s, overdue.setting}, now);
}

void CollectiveWatch::is_over(const message::Overdue& overdue) {
  if (parts_.timeouts != nullptr) parts_.timeouts->over(overdue.sequence);
  if (overdue.sequence != unfinished_) return;
  unfinished_ = 0;
  parts_.status.note("collective", "");
  Warning warning = warning_of(WarningKind::collective,
                               fmt::format("{} #{} of {} has ended after {:.1f} s", to_string(overdue.kind),
                                           overdue.sequence, overdue.name, overdue.took_s));
  warning.verdict = to_string(CollectiveVerdict::over);
  warning.sequence = overdue.sequence;
  parts_.warn(std::move(warning));
}

void CollectiveWatch::inquire(Inquiry::Question question, Clock::time_point now) {
  if (question.limit_s > 0 && question.sequence <= inquired_) return;
  if (inquiry_) {
    if (question.limit_s > 0) next_ = std::move(question);
    return;
  }
  if (question.limit_s > 0) inquired_ = question.sequence;
  inquiry_.emplace(std::move(question), parts_.world_size);
  parts_.ask(now);
}

void CollectiveWatch::answered(std::map<int, LedgerAnswer>&& ledgers, Clock::time_point now) {
  if (!inquiry_) return;
  for (auto& [rank, ledger] : ledgers) inquiry_->add(rank, std::move(ledger));
  const auto verdict = inquiry_->conclude(parts_.status, now, different_);
  inquiry_.reset();
  if (auto next = std::exchange(next_, std::nullopt)) inquire(*std::move(next), now);
  if (!verdict) return;
  if (verdict->limit_s > 0 && parts_.record) parts_.record(now);
  if (parts_.advice != nullptr) parts_.advice->found(verdict->kind, verdict->sequence, verdict->ranks);
  if (parts_.timeouts != nullptr) parts_.timeouts->hangs(*verdict, now);
  tell(*verdict);
}

void CollectiveWatch::tell(const Inquiry::Verdict& verdict) {
  if (verdict.kind == CollectiveVerdict::different)
    different_ = true;
  else
    unfinished_ = verdict.sequence;
  // Who is missing is in the status anyway, as of each moment.
  if (verdict.kind != CollectiveVerdict::missing)
    parts_.status.note(verdict.kind == CollectiveVerdict::slow ? "collective" : "different", verdict.text);
  Warning warning = warning_of(WarningKind::collective, verdict.text);
  warning.verdict = to_string(verdict.kind);
  warning.sequence = verdict.sequence;
  warning.ranks = verdict.ranks;
  parts_.warn(std::move(warning));
}

/// What a rank has called so far has to be what rank 0 called, up to the same number.
void CollectiveWatch::handle(int source, const message::Beat& beat, Clock::time_point now) {
  if (different_ || parts_.ledger == nullptr || !beat.launched) return;
  // One that rank 0 hasn't come to yet is kept, not replaced: it is compared as soon as that has.
  if (source != 0) unchecked_.add(source, *beat.launched);
  compare_digests(now);
}

void CollectiveWatch::compare_digests(Clock::time_point now) {
  for (const auto& [rank, launched] : unchecked_.take_up_to(parts_.ledger->newest())) {
    const auto own = parts_.ledger->find(launched.sequence);
    if (own && own->digest != launched.digest)
      inquire({.sequence = launched.sequence, .limit_s = 0, .setting = ""}, now);
  }
}

}  // namespace footplate
