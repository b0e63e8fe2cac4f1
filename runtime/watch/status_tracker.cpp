#include "runtime/watch/status_tracker.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "runtime/watch/event_parts.h"

namespace footplate {
namespace {

// What a status shows of the metrics.
constexpr auto kLoss = "train/loss";
constexpr auto kLearningRate = "train/lr";
constexpr auto kEvalLoss = "eval/loss";
constexpr auto kTokens = "perf/tokens_per_s";
constexpr auto kStepMs = "perf/step_ms";

/// Own measure of the pace is renewed this often.
constexpr std::chrono::seconds kPaceWindow{2};

/// Ranks that a status lists: it has to fit a line of the protocol, twice a second.
constexpr std::size_t kMostListed = 512;

/// A heartbeat that seems older was sent by another clock after all (containers of one name).
constexpr std::chrono::seconds kMostInTransit{10};

std::string duration(double seconds) {
  return seconds < 10 ? fmt::format("{:.1f} s", seconds) : fmt::format("{:.0f} s", seconds);
}

bool in_collective(const message::Beat& beat) {
  return beat.collective && beat.collective->running;
}

std::string name_of(const CollectiveStatus& collective) {
  return fmt::format("{} #{}", collective.kind, collective.sequence);
}

}  // namespace

StatusTracker::StatusTracker(int world_size, ControlTimes times, Clock::time_point now)
    : times_(times),
      ranks_(static_cast<std::size_t>(world_size)),
      earliest_(ranks_.size()),
      last_tick_(now),
      trust_from_(now) {
  for (int rank = 0; rank < world_size; ++rank) heard(rank, now);
}

void StatusTracker::world_changed(const std::vector<int>& before, Clock::time_point now) {
  const std::vector<Rank> ranks = std::exchange(ranks_, std::vector<Rank>(before.size()));
  earliest_ = Earliest(before.size());
  stalled_ = waiting_ = 0;
  for (std::size_t rank = 0; rank < before.size(); ++rank) {
    if (before[rank] >= 0) {
      const Rank& was = ranks[static_cast<std::size_t>(before[rank])];
      ranks_[rank].beat = was.beat;
      ranks_[rank].beaten = was.beaten;
    }
    if (waits_long(ranks_[rank])) ++waiting_;
    heard(static_cast<int>(rank), now);
  }
  pace_since_ = {};
  last_tick_ = std::max(last_tick_, Clock::now());  // bringing the ranks together took this thread's time
}

void StatusTracker::beat(int rank, const message::Beat& beat, Clock::time_point now) {
  const std::int64_t step = beat.step;
  Rank& one = ranks_[static_cast<std::size_t>(rank)];
  if (waits_long(one)) --waiting_;
  one.beat = beat;
  one.beaten = sent(beat, now);
  if (waits_long(one)) ++waiting_;
  heard(rank, sent(beat, now));
  if (rank != 0 || now - pace_since_ < kPaceWindow) return;
  if (pace_since_ != Clock::time_point{} && step > pace_step_)
    pace_ms_ = in_seconds(now - pace_since_) * 1e3 / static_cast<double>(step - pace_step_);
  pace_step_ = step;
  pace_since_ = now;
}

const message::Beat& StatusTracker::beat_of(int rank) const {
  static const message::Beat kNone;
  const auto& beat = at(rank).beat;
  return beat ? *beat : kNone;
}

/// Heartbeats don't ring, and lie until rank 0 looks. Ranks of one host share the clock that says when
/// one was sent; of another host's clock nothing is known.
StatusTracker::Clock::time_point StatusTracker::sent(const message::Beat& beat, Clock::time_point now) const {
  if (beat.host != beat_of(0).host) return now;
  const Clock::time_point at{std::chrono::nanoseconds(beat.at_ns)};
  return at <= now && now - at < kMostInTransit ? at : now;
}

void StatusTracker::heard(int rank, Clock::time_point now) {
  Rank& one = ranks_[static_cast<std::size_t>(rank)];
  one.heard = std::max(one.heard, now);
  if (one.stalled)
    stalled_heard_ = true;
  else if (!one.gone)
    earliest_.set(static_cast<std::size_t>(rank), one.heard);
}

StatusTracker::Clock::time_point StatusTracker::next_tick() const {
  const auto earliest = earliest_.get();
  if (earliest == Clock::time_point::max()) return earliest;
  return std::max(earliest + times_.stalled, trust_from_);
}

void StatusTracker::heard_of(const HeardOf& heard, Clock::time_point now) {
  heard.well.for_each([&](int rank) { this->heard(rank, now); });
  for (const auto& [rank, lasts] : heard.silent) {
    Rank& one = ranks_[static_cast<std::size_t>(rank)];
    one.heard = std::min(one.heard, now - lasts);
    if (!one.stalled && !one.gone) earliest_.set(static_cast<std::size_t>(rank), one.heard);
  }
}

void StatusTracker::goodbye(int rank) {
  ranks_[static_cast<std::size_t>(rank)].gone = true;
  earliest_.unset(static_cast<std::size_t>(rank));
  stalled_heard_ = true;
}

void StatusTracker::metrics(const LoggedMetrics& logged) {
  for (const char* key : {kLoss, kLearningRate, kEvalLoss, kTokens, kStepMs})
    if (const auto number = logged.number(key)) metrics_[key] = *number;
  if (logged.number(kTokens)) pace_unit_ = logged.pace_unit();
}

std::optional<double> StatusTracker::metric(const char* key) const {
  const auto found = metrics_.find(key);
  return found == metrics_.end() ? std::nullopt : std::optional(found->second);
}

void StatusTracker::note(const std::string& key, const std::string& text) {
  if (text.empty())
    notes_.erase(key);
  else
    notes_[key] = text;
}

std::vector<RankChange> StatusTracker::tick(Clock::time_point now) {
  const auto held_up = now - last_tick_;
  if (held_up > times_.stalled / 2 + times_.heartbeat) trust_from_ = now + times_.heartbeat;
  last_tick_ = now;
  std::vector<RankChange> changes;
  // Nobody else could tell of it while it lasted, and the records would show nothing.
  if (held_up > times_.stalled + times_.heartbeat)
    changes.push_back(
        change_of(0, RankChangeKind::back,
                  fmt::format("rank 0 is back: it was silent for {} (stopped, or without a core to run on)",
                              duration(in_seconds(held_up)))));
  if (!is_look_due(now)) return changes;
  stalled_heard_ = false;
  for (int rank = 0; rank < static_cast<int>(ranks_.size()); ++rank) {
    const Rank& one = at(rank);
    const bool silent = !one.gone && now - one.heard > times_.stalled;
    if (silent == one.stalled || (silent && now < trust_from_)) continue;
    set_stalled(rank, silent);
    changes.push_back(
        change_of(rank, silent ? RankChangeKind::stalled : RankChangeKind::back,
                  silent ? "silent: " + describe(rank, now) : fmt::format("rank {} is back", rank)));
  }
  return changes;
}

bool StatusTracker::is_look_due(Clock::time_point now) const {
  const auto earliest = earliest_.get();
  const bool fell_silent =
      earliest != Clock::time_point::max() && now - earliest > times_.stalled && now >= trust_from_;
  return fell_silent || stalled_heard_;
}

void StatusTracker::set_stalled(int rank, bool stalled) {
  Rank& one = ranks_[static_cast<std::size_t>(rank)];
  one.stalled = stalled;
  stalled ? ++stalled_ : --stalled_;
  if (stalled || one.gone)
    earliest_.unset(static_cast<std::size_t>(rank));
  else
    earliest_.set(static_cast<std::size_t>(rank), one.heard);
}

bool StatusTracker::waits_long(const Rank& one) const {
  return one.beat && in_collective(*one.beat) && one.beat->collective->age_s >= in_seconds(times_.missing);
}

double StatusTracker::silent_s(int rank, Clock::time_point now) const {
  return std::max(0.0, in_seconds(now - at(rank).heard));
}

std::string StatusTracker::describe(int rank, Clock::time_point now) const {
  const Rank& one = at(rank);
  const double since = silent_s(rank, now);
  if (!one.beat && since < 1)  // who has just become rank 0 has heard of nobody
    return fmt::format("rank {}: where it is isn't known yet", rank);
  if (!one.beat) return fmt::format("rank {}: not heard of for {}", rank, duration(since));
  const message::Beat& beat = *one.beat;
  std::string text = fmt::format("rank {}: step {}, ", rank, beat.step);
  const double since_beat = in_seconds(now - one.beaten);
  double age = beat.phase_s + since_beat;
  if (in_collective(beat)) {
    text += name_of(*beat.collective);
    age = beat.collective->age_s + since_beat;
  } else {
    text += to_string(beat.phase);
    if (beat.collective) text += " after " + name_of(*beat.collective);
  }
  // Where it was, not where it is: it may have come further, or be gone.
  if (now - one.heard > times_.stalled) return text + ", last heard " + duration(since) + " ago";
  return text + ", " + duration(age);
}

std::string StatusTracker::whom(const std::vector<int>& ranks, Clock::time_point now) const {
  if (ranks.empty()) return "nobody";
  const int worst = *std::min_element(ranks.begin(), ranks.end(), [&](int a, int b) {
    if (at(a).stalled != at(b).stalled) return at(a).stalled;
    return beat_of(a).step < beat_of(b).step;
  });
  std::string text = describe(worst, now);
  if (ranks.size() > 1) text += fmt::format(" (and {} more)", ranks.size() - 1);
  return text;
}

/// Who keeps the others in a collective that has lasted for `age_s`: whoever hasn't begun it.
std::optional<int> StatusTracker::missing_rank(double age_s, Clock::time_point now,
                                               std::uint64_t& sequence) const {
  if (waiting_ == 0 && age_s >= in_seconds(times_.missing)) return std::nullopt;
  std::uint64_t furthest = 0;
  double age = 0;
  for (const auto& rank : ranks_) {
    if (!rank.beat || !in_collective(*rank.beat)) continue;
    const CollectiveStatus& newest = *rank.beat->collective;
    if (newest.sequence >= furthest) age = std::max(newest.sequence > furthest ? 0 : age, newest.age_s);
    furthest = std::max(furthest, newest.sequence);
  }
  sequence = furthest;
  if (furthest == 0 || age < age_s) return std::nullopt;
  // A heartbeat from before it began says nothing.
  const auto began = now - std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(age));
  for (int rank = 0; rank < static_cast<int>(ranks_.size()); ++rank) {
    const auto& collective = beat_of(rank).collective;
    const bool is_fresh = !at(rank).beat || at(rank).beaten >= began;
    if (!at(rank).stalled && is_fresh && (!collective || collective->sequence < furthest)) return rank;
  }
  return std::nullopt;
}

std::string StatusTracker::missing(Clock::time_point now) const {
  std::uint64_t sequence = 0;
  const auto rank = missing_rank(in_seconds(times_.missing), now, sequence);
  return rank ? fmt::format("collective #{} waits for {}", sequence, describe(*rank, now)) : "";
}

std::optional<StatusTracker::Stuck> StatusTracker::stuck(std::chrono::duration<double> limit,
                                                         Clock::time_point now) const {
  std::optional<int> found;
  for (int rank = 1; stalled_ > 0 && !found && rank < static_cast<int>(ranks_.size()); ++rank)
    if (at(rank).stalled && silent_s(rank, now) > limit.count()) found = rank;
  std::uint64_t sequence = 0;
  if (!found) found = missing_rank(limit.count(), now, sequence);
  if (!found || *found == 0 || is_saving(*found)) return std::nullopt;
  return who(*found, now);
}

bool StatusTracker::is_saving(int rank) const {
  return beat_of(rank).phase == Phase::saving;
}

StatusTracker::Stuck StatusTracker::who(int rank, Clock::time_point now) const {
  const message::Beat& beat = beat_of(rank);
  return {rank, beat.pid, beat.host, describe(rank, now)};
}

std::optional<double> StatusTracker::step_ms() const {
  const auto measured = metric(kStepMs);
  if (measured || pace_ms_ == 0) return measured;
  return pace_ms_;
}

RankStatus StatusTracker::rank_status(int rank, Clock::time_point now) const {
  const message::Beat& beat = beat_of(rank);
  const double since_beat = at(rank).beat ? std::max(0.0, in_seconds(now - at(rank).beaten)) : 0;
  RankStatus status{.rank = rank,
                    .host = beat.host,
                    .pid = beat.pid,
                    .step = beat.step,
                    .phase = std::string(to_string(beat.phase)),
                    .phase_s = beat.phase_s + since_beat,
                    .silent_s = silent_s(rank, now),
                    .stalled = at(rank).stalled,
                    .collective = beat.collective};
  if (status.collective) status.collective->age_s += since_beat;
  return status;
}

std::vector<int> StatusTracker::listed_ranks() const {
  std::size_t silent = 0;
  std::size_t others = kMostListed - std::min(kMostListed, stalled_);
  std::vector<int> listed;
  for (int rank = 0; rank < static_cast<int>(ranks_.size()) && (silent < stalled_ || others > 0); ++rank) {
    const bool is_stalled = at(rank).stalled;
    if (is_stalled ? silent++ < kMostListed : others > 0) listed.push_back(rank);
    if (!is_stalled && others > 0) --others;
  }
  return listed;
}

RunStatus StatusTracker::run_status(std::int64_t steps, Clock::time_point now) const {
  const message::Beat& own = beat_of(0);
  RunStatus status;
  status.state = own.state;
  status.step = own.step;
  status.steps = steps;
  status.world_size = static_cast<int>(ranks_.size());
  status.loss = metric(kLoss);
  status.lr = metric(kLearningRate);
  status.eval_loss = metric(kEvalLoss);
  status.tokens_per_s = metric(kTokens);
  status.pace_unit = pace_unit_;
  status.step_ms = step_ms();
  status.best_eval_loss = own.best_eval_loss;
  status.evaluating_step = own.evaluating_step;
  status.saving_step = own.saving_step;
  status.saving_share = own.saving_share;
  if (status.step_ms && *status.step_ms > 0)
    status.eta_s = static_cast<double>(std::max<std::int64_t>(0, steps - own.step)) * *status.step_ms / 1e3;
  for (const int rank : listed_ranks()) {
    status.ranks.push_back(rank_status(rank, now));
    if (at(rank).stalled) status.notes.push_back("silent: " + describe(rank, now));
  }
  if (std::string text = missing(now); !text.empty()) status.notes.push_back(std::move(text));
  for (const auto& [key, text] : notes_) status.notes.push_back(text);
  return status;
}

}  // namespace footplate
