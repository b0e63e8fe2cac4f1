#include "runtime/watch/status_tracker.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "runtime/base/progress.h"

namespace footplate {
namespace {

/// What `status` shows of the metrics, by its name there.
constexpr std::array<std::pair<const char*, const char*>, 5> kShown{{{"loss", "train/loss"},
                                                                     {"lr", "train/lr"},
                                                                     {"eval_loss", "eval/loss"},
                                                                     {"tokens_per_s", "perf/tokens_per_s"},
                                                                     {"step_ms", "perf/step_ms"}}};

/// Own measure of the pace is renewed this often.
constexpr std::chrono::seconds kPaceWindow{2};

/// A heartbeat that seems older was sent by another clock after all (containers of one name).
constexpr std::chrono::seconds kMostInTransit{10};

std::string duration(double seconds) {
  return seconds < 10 ? fmt::format("{:.1f} s", seconds) : fmt::format("{:.0f} s", seconds);
}

std::int64_t step_of(const Json& beat) {
  return beat.value("step", std::int64_t{0});
}

bool in_collective(const Json& beat) {
  return beat.contains("collective") && beat["collective"].value("running", false);
}

std::string name_of(const Json& collective) {
  return fmt::format("{} #{}", collective.value("kind", ""), collective.value("sequence", std::uint64_t{0}));
}

}  // namespace

StatusTracker::StatusTracker(int world_size, ControlTimes times, Clock::time_point now)
    : times_(times), ranks_(static_cast<std::size_t>(world_size)), last_tick_(now), trust_from_(now) {
  for (auto& rank : ranks_) rank.heard = now;
}

void StatusTracker::world_changed(const std::vector<int>& before, Clock::time_point now) {
  std::vector<Rank> ranks(before.size());
  for (std::size_t rank = 0; rank < before.size(); ++rank) {
    if (before[rank] >= 0) ranks[rank].beat = at(before[rank]).beat;
    ranks[rank].heard = now;
  }
  ranks_ = std::move(ranks);
  pace_since_ = {};
}

void StatusTracker::beat(int rank, const Json& beat, Clock::time_point now) {
  ranks_[static_cast<std::size_t>(rank)].beat = beat;
  heard(rank, sent(beat, now));
  if (rank != 0 || now - pace_since_ < kPaceWindow) return;
  const std::int64_t step = step_of(beat);
  if (pace_since_ != Clock::time_point{} && step > pace_step_)
    pace_ms_ = in_seconds(now - pace_since_) * 1e3 / static_cast<double>(step - pace_step_);
  pace_step_ = step;
  pace_since_ = now;
}

/// Heartbeats don't ring, and lie until rank 0 looks. Ranks of one host share the clock that says when
/// one was sent; of another host's clock nothing is known.
StatusTracker::Clock::time_point StatusTracker::sent(const Json& beat, Clock::time_point now) const {
  if (beat.value("host", "") != ranks_[0].beat.value("host", "")) return now;
  const Clock::time_point at{std::chrono::nanoseconds(beat.value("at_ns", std::int64_t{0}))};
  return at <= now && now - at < kMostInTransit ? at : now;
}

void StatusTracker::heard(int rank, Clock::time_point now) {
  auto& heard = ranks_[static_cast<std::size_t>(rank)].heard;
  heard = std::max(heard, now);
}

StatusTracker::Clock::time_point StatusTracker::next_tick() const {
  auto next = Clock::time_point::max();
  for (const auto& rank : ranks_)
    if (!rank.gone && !rank.stalled)
      next = std::min(next, std::max(rank.heard + times_.stalled, trust_from_));
  return next;
}

void StatusTracker::goodbye(int rank) {
  ranks_[static_cast<std::size_t>(rank)].gone = true;
}

void StatusTracker::metrics(const Json& data) {
  for (const auto& [shown, key] : kShown)
    if (data.contains(key))
      if (const auto number = number_from_json(data[key])) metrics_[shown] = *number;
}

void StatusTracker::note(const std::string& key, const std::string& text) {
  if (text.empty())
    notes_.erase(key);
  else
    notes_[key] = text;
}

std::vector<Json> StatusTracker::tick(Clock::time_point now) {
  const auto held_up = now - last_tick_;
  if (held_up > times_.stalled / 2 + times_.heartbeat) trust_from_ = now + times_.heartbeat;
  last_tick_ = now;
  std::vector<Json> changes;
  // Nobody else could tell of it while it lasted, and the records would show nothing.
  if (held_up > times_.stalled + times_.heartbeat)
    changes.push_back({{"rank", 0},
                       {"state", "back"},
                       {"text", fmt::format("rank 0 is back: it was silent for {} (stopped, or without a "
                                            "core to run on)",
                                            duration(in_seconds(held_up)))}});
  for (int rank = 0; rank < static_cast<int>(ranks_.size()); ++rank) {
    auto& one = ranks_[static_cast<std::size_t>(rank)];
    const bool silent = !one.gone && now - one.heard > times_.stalled;
    if (silent == one.stalled || (silent && now < trust_from_)) continue;
    one.stalled = silent;
    const std::string text = silent ? "silent: " + describe(rank, now) : fmt::format("rank {} is back", rank);
    changes.push_back({{"rank", rank}, {"state", silent ? "stalled" : "back"}, {"text", text}});
  }
  return changes;
}

bool StatusTracker::anyone_silent() const {
  return std::any_of(ranks_.begin(), ranks_.end(), [](const Rank& rank) { return rank.stalled; });
}

double StatusTracker::silent_s(int rank, Clock::time_point now) const {
  return std::max(0.0, in_seconds(now - at(rank).heard));
}

std::string StatusTracker::describe(int rank, Clock::time_point now) const {
  const Rank& one = at(rank);
  if (one.beat.empty() && silent_s(rank, now) < 1)  // who has just become rank 0 has heard of nobody
    return fmt::format("rank {}: where it is isn't known yet", rank);
  if (one.beat.empty())
    return fmt::format("rank {}: not heard of for {}", rank, duration(silent_s(rank, now)));
  const double since = silent_s(rank, now);
  std::string text = fmt::format("rank {}: step {}, ", rank, step_of(one.beat));
  double age = one.beat.value("phase_s", 0.0) + since;
  if (in_collective(one.beat)) {
    text += name_of(one.beat["collective"]);
    age = one.beat["collective"].value("age_s", 0.0) + since;
  } else {
    text += one.beat.value("phase", "");
    if (one.beat.contains("collective")) text += " after " + name_of(one.beat["collective"]);
  }
  // Where it was, not where it is: it may have come further, or be gone.
  if (now - one.heard > times_.stalled) return text + ", last heard " + duration(since) + " ago";
  return text + ", " + duration(age);
}

std::string StatusTracker::whom(const std::vector<int>& ranks, Clock::time_point now) const {
  if (ranks.empty()) return "nobody";
  const int worst = *std::min_element(ranks.begin(), ranks.end(), [&](int a, int b) {
    if (at(a).stalled != at(b).stalled) return at(a).stalled;
    return step_of(at(a).beat) < step_of(at(b).beat);
  });
  std::string text = describe(worst, now);
  if (ranks.size() > 1) text += fmt::format(" (and {} more)", ranks.size() - 1);
  return text;
}

/// Who keeps the others in a collective that has lasted for `age_s`: whoever hasn't begun it.
std::optional<int> StatusTracker::missing_rank(double age_s, std::uint64_t& sequence) const {
  std::uint64_t furthest = 0;
  double age = 0;
  for (const auto& rank : ranks_) {
    if (!in_collective(rank.beat)) continue;
    const std::uint64_t at = rank.beat["collective"].value("sequence", std::uint64_t{0});
    if (at >= furthest) age = std::max(at > furthest ? 0 : age, rank.beat["collective"].value("age_s", 0.0));
    furthest = std::max(furthest, at);
  }
  sequence = furthest;
  if (furthest == 0 || age < age_s) return std::nullopt;
  for (int rank = 0; rank < static_cast<int>(ranks_.size()); ++rank) {
    const Json collective = at(rank).beat.value("collective", Json::object());
    if (!at(rank).stalled && collective.value("sequence", std::uint64_t{0}) < furthest) return rank;
  }
  return std::nullopt;
}

std::string StatusTracker::missing(Clock::time_point now) const {
  std::uint64_t sequence = 0;
  const auto rank = missing_rank(in_seconds(times_.missing), sequence);
  return rank ? fmt::format("collective #{} waits for {}", sequence, describe(*rank, now)) : "";
}

std::optional<StatusTracker::Stuck> StatusTracker::stuck(std::chrono::duration<double> limit,
                                                 Clock::time_point now) const {
  std::optional<int> found;
  for (int rank = 1; rank < static_cast<int>(ranks_.size()) && !found; ++rank)
    if (at(rank).stalled && silent_s(rank, now) > limit.count()) found = rank;
  std::uint64_t sequence = 0;
  if (!found) found = missing_rank(limit.count(), sequence);
  if (!found || *found == 0 || is_saving(*found)) return std::nullopt;
  return who(*found, now);
}

bool StatusTracker::is_saving(int rank) const {
  return at(rank).beat.value("phase", "") == to_string(Phase::saving);
}

StatusTracker::Stuck StatusTracker::who(int rank, Clock::time_point now) const {
  const Json& beat = at(rank).beat;
  return {rank, beat.value("pid", 0), beat.value("host", ""), describe(rank, now)};
}

double StatusTracker::step_ms() const {
  const auto measured = metrics_.find("step_ms");
  return measured == metrics_.end() ? pace_ms_ : measured->second;
}

Json StatusTracker::rank_to_json(int rank, Clock::time_point now) const {
  const Rank& one = at(rank);
  const double since = silent_s(rank, now);
  Json json = {{"rank", rank},
               {"host", one.beat.value("host", "")},
               {"pid", one.beat.value("pid", 0)},
               {"step", step_of(one.beat)},
               {"phase", one.beat.value("phase", "starting")},
               {"phase_s", one.beat.value("phase_s", 0.0) + since},
               {"silent_s", since},
               {"stalled", one.stalled}};
  if (one.beat.contains("collective")) {
    json["collective"] = one.beat["collective"];
    json["collective"]["age_s"] = one.beat["collective"].value("age_s", 0.0) + since;
  }
  return json;
}

Json StatusTracker::to_json(std::int64_t steps, Clock::time_point now) const {
  const std::int64_t step = step_of(ranks_[0].beat);
  Json json = {{"state", ranks_[0].beat.value("state", "starting")},
               {"step", step},
               {"steps", steps},
               {"world_size", ranks_.size()},
               {"notes", Json::array()},
               {"ranks", Json::array()}};
  for (const auto& [shown, key] : kShown) {
    const auto found = metrics_.find(shown);
    json[shown] = found == metrics_.end() ? Json() : number_to_json(found->second);
  }
  if (json["step_ms"].is_null() && pace_ms_ > 0) json["step_ms"] = pace_ms_;
  json["best_eval_loss"] = ranks_[0].beat.value("best_eval_loss", Json());
  json["evaluating_step"] = ranks_[0].beat.value("evaluating_step", Json());
  json["eta_s"] = step_ms() > 0
                      ? Json(static_cast<double>(std::max<std::int64_t>(0, steps - step)) * step_ms() / 1e3)
                      : Json();
  for (int rank = 0; rank < static_cast<int>(ranks_.size()); ++rank) {
    json["ranks"].push_back(rank_to_json(rank, now));
    if (at(rank).stalled) json["notes"].push_back("silent: " + describe(rank, now));
  }
  if (const std::string text = missing(now); !text.empty()) json["notes"].push_back(text);
  for (const auto& [key, text] : notes_) json["notes"].push_back(text);
  return json;
}

}  // namespace footplate
