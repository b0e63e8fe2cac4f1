#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "protocol/messages/event.h"
#include "runtime/base/clock.h"
#include "runtime/base/times.h"
#include "runtime/watch/earliest.h"
#include "runtime/watch/messages.h"

namespace footplate {

/// Rank 0: what is known of every rank from its heartbeats, and of training from its last metrics.
/// Needs no training thread, so it answers while training hangs.
class StatusTracker {
 public:
  using Clock = SteadyClock;
  StatusTracker(int world_size, ControlTimes times, Clock::time_point now);

  /// The ranks are others now: `before` tells the number that each had, -1 for none.
  void world_changed(const std::vector<int>& before, Clock::time_point now);

  void beat(int rank, const message::Beat& beat, Clock::time_point now);
  void heard(int rank, Clock::time_point now);
  /// Through other ranks.
  void heard_of(const HeardOf& heard, Clock::time_point now);
  void goodbye(int rank);
  void metrics(const LoggedMetrics& logged);
  /// Shown under `notes` until replaced; empty text: no longer.
  void note(const std::string& key, const std::string& text);

  /// Ranks that fell silent or came back since the last tick; rank 0 itself, which nobody watches here, where
  /// it hasn't ticked for as long as would make it silent to others.
  std::vector<RankChange> tick(Clock::time_point now);

  /// Whether some rank is, as of the last tick.
  bool anyone_silent() const { return stalled_ > 0; }

  struct Stuck {
    int rank = 0;
    int pid = 0;
    std::string host;
    std::string text;  ///< "rank 2: step 812, reduce after all_reduce #4471, 4.6 s"
  };
  /// Any rank, so described.
  Stuck who(int rank, Clock::time_point now) const;
  /// A rank that was silent, or that the others have waited for in a collective, for longer than `limit`. Not
  /// one that saves, nor rank 0 itself.
  std::optional<Stuck> stuck(std::chrono::duration<double> limit, Clock::time_point now) const;

  bool is_saving(int rank) const;

  /// When a tick would next find somebody silent.
  Clock::time_point next_tick() const;

  /// "rank 3: step 812, all_reduce #4471, 42 s", of the one among `ranks` that is furthest behind. One that
  /// is silent: "rank 3: step 812, all_reduce #4471, last heard 3.2 s ago".
  std::string whom(const std::vector<int>& ranks, Clock::time_point now) const;

  /// How long ago this rank was last heard of.
  double silent_s(int rank, Clock::time_point now) const;

  /// Without the run, what it is called and its orders, which the caller knows. Of more than 512 ranks it has
  /// those that are silent, and the lowest.
  RunStatus run_status(std::int64_t steps, Clock::time_point now) const;

 private:
  struct Rank {
    std::optional<message::Beat> beat;  ///< the last one; nothing: there was none
    Clock::time_point beaten;           ///< when that was sent, or came
    Clock::time_point heard;
    bool stalled = false;
    bool gone = false;  ///< said goodbye: silent on purpose
  };

  /// Whether a tick at `now` has anything to say of any rank; its look at all of them is worth it then.
  bool is_look_due(Clock::time_point now) const;
  void set_stalled(int rank, bool stalled);
  bool waits_long(const Rank& one) const;
  RankStatus rank_status(int rank, Clock::time_point now) const;
  std::vector<int> listed_ranks() const;
  std::string missing(Clock::time_point now) const;
  std::optional<int> missing_rank(double age_s, Clock::time_point now, std::uint64_t& sequence) const;
  std::string describe(int rank, Clock::time_point now) const;
  Clock::time_point sent(const message::Beat& beat, Clock::time_point now) const;
  std::optional<double> step_ms() const;
  std::optional<double> metric(const char* key) const;
  /// As it is before the first one where there was none.
  const message::Beat& beat_of(int rank) const;
  const Rank& at(int rank) const { return ranks_[static_cast<std::size_t>(rank)]; }

  ControlTimes times_;
  std::vector<Rank> ranks_;
  // Kept with each change of a rank, so that what is asked all the time looks at no rank.
  Earliest earliest_;           ///< when those were heard who are neither stalled nor gone
  std::size_t stalled_ = 0;     ///< how many are
  std::size_t waiting_ = 0;     ///< how many are in a collective, and long
  bool stalled_heard_ = false;  ///< one that is stalled was heard since the last tick, or is gone
  std::map<std::string, std::string> notes_;
  std::map<std::string, double> metrics_;  ///< last values of those that status shows
  std::string pace_unit_ = RunStatus().pace_unit;
  Clock::time_point last_tick_;
  Clock::time_point trust_from_;  ///< rank 0 itself was stopped: others get time to be heard again
  // Rank 0's own pace, for the time that is left.
  std::int64_t pace_step_ = 0;
  Clock::time_point pace_since_{};
  double pace_ms_ = 0;
};

}  // namespace footplate
