#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "runtime/base/clock.h"
#include "runtime/watch/messages.h"

namespace footplate {

/// A collective that went past its deadline and ended after all, as all ranks together saw it.
struct LateCollective {
  using Clock = SteadyClock;
  std::string setting;  ///< the deadline that applied: "comm.timeout_s"
  double limit_s = 0;   ///< what that was
  Collective kind = Collective::all_reduce;
  std::string name;  ///< "gradients"
  std::int64_t step = 0;
  std::int64_t elements = 0;
  std::int64_t bytes = 0;
  double longest_s = 0;   ///< of the rank that came first: it waited for the others, too
  double shortest_s = 0;  ///< of the rank that came last among those past the deadline
  /// Every rank was in it for longer than the deadline: nobody was waited for, the operation itself took that
  /// long.
  bool by_itself = false;
  std::vector<int> last;  ///< who came last, or not for long; empty: unknown
  Clock::time_point ended;
};

/// Rank 0: what the ranks' watchdogs say, put together by collective. A state machine; control thread.
class LateCollectives {
 public:
  explicit LateCollectives(int world_size) : world_size_(world_size) {}

  /// The collective, once it has ended on every rank that was past the deadline in it.
  std::optional<LateCollective> handle(int source, const message::Overdue& overdue,
                                       LateCollective::Clock::time_point now);
  /// Who is missing from this one, or came last to it.
  void found(std::uint64_t sequence, const std::vector<int>& ranks);

  /// Whether none is past its deadline just now: one that is may never end.
  bool none() const { return open_.empty(); }

 private:
  struct Open {
    LateCollective late;
    std::set<int> waiting;  ///< ranks that it hasn't ended on
    std::set<int> told;     ///< ranks that were past the deadline in it
  };

  int world_size_;
  std::map<std::uint64_t, Open> open_;  ///< by sequence; a rank is in at most one at a time
};

}  // namespace footplate
