#pragma once

#include <chrono>
#include <cstdint>
#include <utility>
#include <vector>

#include "runtime/base/clock.h"
#include "runtime/comm/message_channel.h"
#include "runtime/comm/tree/tree_layout.h"
#include "runtime/comm/tree/tree_words.h"

namespace footplate {

/// The ranks right below this one, and what their signs of life say of those further down. A rank is silent
/// once its parent hasn't heard it for `stalled`. Those below a silent one count as well as they were: their
/// signs don't get through.
class TreeChildren {
 public:
  using Clock = SteadyClock;
  using milliseconds = std::chrono::milliseconds;

  /// `heartbeat`: between two signs of a rank, and between two looks of this one at most.
  TreeChildren(std::vector<TreeLayout::Child> children, milliseconds heartbeat, milliseconds stalled,
               Clock::time_point now);

  void add_sign(int rank, const tree::Sign& sign, Clock::time_point now);
  /// Something else has come from it.
  void heard(int rank, Clock::time_point now);

  /// Before the others, at each turn: after this process was held up the ranks get time to be heard again.
  void look(Clock::time_point now);
  /// Whether somebody has become silent, here or further down, since the last call of this.
  bool take_news(Clock::time_point now);
  Silences silent(Clock::time_point now) const;
  /// Of a rank that hasn't given a sign here so far, nothing.
  HeardOf heard_of(Clock::time_point now) const;
  /// Of Down, what all of them have taken.
  std::uint64_t taken() const;
  /// When the next one would be silent.
  Clock::time_point next_silence() const;

  const std::vector<int>& ranks() const { return numbers_; }

 private:
  struct Child {
    TreeLayout::Child place;
    Clock::time_point heard;
    bool was_heard = false;   ///< not only placed here
    bool told = false;        ///< that it is silent
    std::uint64_t taken = 0;  ///< as its last sign has it
    Silences silent = {};     ///< likewise
  };
  /// It is silent once nothing has come for longer.
  milliseconds patience_with(const Child& child) const;
  bool is_silent(const Child& child, Clock::time_point now) const;
  Child* find(int rank);

  milliseconds heartbeat_;
  milliseconds stalled_;
  std::vector<Child> children_;
  std::vector<int> numbers_;
  Clock::time_point looked_;
  Clock::time_point trust_from_;
  bool news_ = false;  ///< a sign has told of another silent rank
};

}  // namespace footplate
