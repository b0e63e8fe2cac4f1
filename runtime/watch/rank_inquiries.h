#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "runtime/base/clock.h"
#include "runtime/base/times.h"
#include "runtime/watch/messages.h"
#include "runtime/watch/rank_queries.h"

namespace footplate {

/// Rank 0: asks ranks what rank_queries.h has. A state machine as Coordinator is; control thread.
class RankInquiries {
 public:
  using Clock = SteadyClock;
  struct Parts {
    int world_size = 1;
    std::function<void(int to, const message::ToRanks& message)> send;
    std::function<void(const message::ToRanks& message)> send_all;
    /// Those asked have answered, or had their time. May ask again.
    std::function<void(const RankQuery& query, RankAnswers heard, Clock::time_point now)> answered;
    ControlTimes times;
  };

  explicit RankInquiries(Parts parts) : parts_(std::move(parts)) {}

  /// Asks this rank; nothing: all of them. One that doesn't exist is nobody. Answered once those asked have
  /// said something, or after times.inquiry without the others. The same again meanwhile joins the first.
  void ask(const RankQuery& query, std::optional<int> rank, Clock::time_point now);
  void handle(int source, const message::Answer& answer, Clock::time_point now);
  void tick(Clock::time_point now) { tell_finished(now); }
  Clock::time_point next_tick() const;
  /// Whether answers are awaited; messages are worth looking for more often then.
  bool awaiting_answers() const { return !open_.empty(); }

 private:
  struct Open {
    RankAnswers heard;  ///< who is silent so far is awaited
    Clock::time_point until;
    bool is_finished(Clock::time_point now) const { return heard.silent.empty() || now >= until; }
  };

  void tell_finished(Clock::time_point now);

  Parts parts_;
  std::map<std::pair<const RankQuery*, std::optional<int>>, Open> open_;
  /// Have been asked and have not answered: one that is stopped isn't asked again, or it would have to answer
  /// many times as soon as it goes on.
  std::set<std::pair<const RankQuery*, int>> owing_;
};

}  // namespace footplate
