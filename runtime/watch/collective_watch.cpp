#include "runtime/watch/collective_watch.h"

#include <fmt/format.h>

#include <algorithm>

#include "runtime/watch/messages.h"

namespace footplate {

void CollectiveWatch::handle(int source, const Json& message, Clock::time_point now) {
  const std::string type = message.at("t");
  if (type == message::kBeat) on_beat(source, message, now);
  if (type == message::kOverdue) {
    if (parts_.advice != nullptr) parts_.advice->handle(source, message, now);
    on_overdue(message, now);
  }
  if (type == message::kLedger && inquiry_) {
    inquiry_->inquiry.add(source, message);
    if (inquiry_->inquiry.complete()) conclude(now);
  }
  if (type == message::kPatterns && patterns_) {
    patterns_->by_rank[source] = message.at("patterns");
    if (static_cast<int>(patterns_->by_rank.size()) == parts_.world_size) report_patterns();
  }
}

/// Each rank's watchdog says so by itself: the first one counts.
void CollectiveWatch::on_overdue(const Json& message, Clock::time_point now) {
  const std::uint64_t sequence = message.at("sequence");
  if (!message.value("over", false)) {
    inquire(sequence, message.at("limit_s"), now);
    return;
  }
  if (parts_.timeouts != nullptr) parts_.timeouts->over(sequence);
  if (sequence != unfinished_) return;
  unfinished_ = 0;
  parts_.status.note("collective", "");
  const std::string text = fmt::format("{} #{} of {} has ended after {:.1f} s", message.value("kind", ""),
                                       sequence, message.value("name", ""), message.value("took_s", 0.0));
  parts_.report("warn",
                {{"kind", "collective"}, {"verdict", "over"}, {"sequence", sequence}, {"text", text}});
}

void CollectiveWatch::inquire(std::uint64_t sequence, double limit_s, Clock::time_point now) {
  if (limit_s > 0 && sequence <= inquired_) return;
  if (inquiry_) {
    if (limit_s > 0) next_ = {sequence, limit_s};
    return;
  }
  inquiry_.emplace(Open{Inquiry(sequence, limit_s, parts_.world_size), now + parts_.times.inquiry});
  if (limit_s > 0) inquired_ = sequence;
  parts_.send_all({{"t", message::kInquire}, {"what", "ledger"}});
}

void CollectiveWatch::conclude(Clock::time_point now) {
  const auto verdict = inquiry_->inquiry.conclude(parts_.status, now, different_);
  inquiry_.reset();
  if (const auto next = std::exchange(next_, std::nullopt)) inquire(next->first, next->second, now);
  if (!verdict) return;
  if (parts_.advice != nullptr) parts_.advice->found(verdict->kind, verdict->sequence, verdict->ranks);
  if (parts_.timeouts != nullptr) parts_.timeouts->hangs(*verdict, now);
  if (verdict->kind == "different")
    different_ = true;
  else
    unfinished_ = verdict->sequence;
  // Who is missing is in the status anyway, as of each moment.
  if (verdict->kind != "missing")
    parts_.status.note(verdict->kind == "slow" ? "collective" : "different", verdict->text);
  parts_.report("warn", {{"kind", "collective"},
                         {"verdict", verdict->kind},
                         {"sequence", verdict->sequence},
                         {"ranks", verdict->ranks},
                         {"text", verdict->text}});
}

/// What a rank has called so far has to be what rank 0 called, up to the same number.
void CollectiveWatch::on_beat(int source, const Json& beat, Clock::time_point now) {
  if (different_ || parts_.ledger == nullptr || !beat.contains("launched")) return;
  // One that rank 0 hasn't come to yet is kept, not replaced: it is compared as soon as that has.
  if (source != 0) unchecked_.try_emplace(source, beat["launched"].at(0), beat["launched"].at(1));
  compare_digests(now);
}

void CollectiveWatch::compare_digests(Clock::time_point now) {
  const std::uint64_t newest = parts_.ledger->newest();
  for (auto one = unchecked_.begin(); one != unchecked_.end();) {
    const auto& [sequence, digest] = one->second;
    if (sequence > newest) {
      ++one;
      continue;
    }
    const auto own = parts_.ledger->find(sequence);
    if (own && own->digest != digest) inquire(sequence, 0, now);
    one = unchecked_.erase(one);
  }
}

void CollectiveWatch::ask_patterns(Clock::time_point now) {
  if (patterns_) return;
  patterns_.emplace(Patterns{{}, now + parts_.times.inquiry});
  parts_.send_all({{"t", message::kInquire}, {"what", "patterns"}});
}

void CollectiveWatch::report_patterns() {
  Json ranks = Json::array();
  for (const auto& [rank, patterns] : patterns_->by_rank)
    for (Json pattern : patterns) {
      pattern["rank"] = rank;
      ranks.push_back(std::move(pattern));
    }
  patterns_.reset();
  parts_.report("comm_report",
                {{"patterns", std::move(ranks)},
                 {"proposals", parts_.advice != nullptr ? parts_.advice->proposals() : Json::array()}});
}

void CollectiveWatch::tick(Clock::time_point now) {
  if (inquiry_ && now >= inquiry_->until) conclude(now);
  if (patterns_ && now >= patterns_->until) report_patterns();
}

CollectiveWatch::Clock::time_point CollectiveWatch::next_tick() const {
  auto next = Clock::time_point::max();
  if (inquiry_) next = std::min(next, inquiry_->until);
  if (patterns_) next = std::min(next, patterns_->until);
  return next;
}

}  // namespace footplate
