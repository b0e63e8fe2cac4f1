#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "runtime/base/clock.h"
#include "runtime/comm/tree/tree_words.h"

namespace footplate {

/// One message that says what two say, where there is one. The first two arguments are encoded messages.
using MergeMessages = std::function<std::optional<std::vector<std::uint8_t>>(std::span<const std::uint8_t>,
                                                                             std::span<const std::uint8_t>)>;

/// What the ranks of a part of the tree say to rank 0, put together on its way. What all of them say goes on
/// at once. What some say waits a little for the others. Each rank's messages stay in the order sent.
class JointMessages {
 public:
  using Clock = SteadyClock;
  /// `ranks`: how many are in this part.
  JointMessages(int ranks, MergeMessages merge) : ranks_(ranks), merge_(std::move(merge)) {}

  void add(tree::Said said, Clock::time_point now);
  /// What goes on now.
  std::vector<tree::Said> take_due(Clock::time_point now);
  /// Everything.
  std::vector<tree::Said> take_all();
  /// When there is something due; Clock::time_point::max(): nothing waits.
  Clock::time_point next_due() const;

 private:
  struct Joint {
    tree::Bytes bytes;
    RankSet waiting;          ///< who says it, and hasn't been passed on
    RankSet told;             ///< who has
    Clock::time_point until;  ///< it goes on then, whoever is missing
    bool is_complete(int ranks) const { return waiting.size() + told.size() == ranks; }
  };
  /// Null: what they say can't be put together with anything without changing a rank's order.
  Joint* find_partner(const tree::Said& said);
  std::vector<tree::Said> take_up_to(std::size_t count);

  int ranks_;
  MergeMessages merge_;
  std::deque<Joint> joint_;  ///< the oldest first; some only told
};

}  // namespace footplate
