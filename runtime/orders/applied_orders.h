#pragma once

#include <cstdint>
#include <string>

#include "protocol/result.h"

namespace footplate {

/// The orders applied so far, by number: the same ones in the same order on all ranks. What a lost rank keeps
/// some ranks from hearing of an order's calls, the others tell by these numbers (recovery.h): all follow
/// those who know, and none tries alone. Guarded by the gate's mutex.
class AppliedOrders {
 public:
  /// The next order is applied.
  void begin() { ++count_; }
  /// The order is applied later.
  void take_back() { --count_; }
  /// The settings of the order are in force.
  void set_in_force(std::uint64_t id) { last_id_ = id; }
  /// This rank does what needs the others, new communicators or a call; or has gone on without, as others had
  /// begun it: after another loss those who come to it follow this rank.
  void begin_calls() { begun_ = count_; }
  /// Whether the others have begun that, and it failed by a loss.
  bool calls_are_over() const { return count_ <= calls_over_; }
  void refuse(const std::string& why) {
    refused_ = count_;
    refusal_ = why;
  }
  /// Whether the order that is applied was refused.
  bool is_refused() const { return count_ == refused_; }

  /// In a process that joins a run: how many were applied, and the id of the last one.
  void join(std::uint64_t count, std::uint64_t last_id) {
    count_ = count;
    last_id_ = last_id;
  }
  /// After a loss: what the others know.
  void resume(std::uint64_t calls_over, std::uint64_t refused, const std::string& refusal,
              std::uint64_t most = 0) {
    most_ = most;
    calls_over_ = calls_over;
    refused_ = refused;
    refusal_ = refusal;
  }

  /// Whether another rank has applied more, which are due here before the next step: it may have taken them
  /// while it stood still, and this rank stands no more.
  bool is_behind() const { return count_ < most_; }
  /// There is none of these here.
  void caught_up() { most_ = 0; }

  std::uint64_t count() const { return count_; }
  /// The id of the last order whose settings are in force; 0: none.
  std::uint64_t last_id() const { return last_id_; }
  /// The number of the last one whose calls were begun here.
  std::uint64_t begun() const { return begun_; }
  /// The number of the last one that was refused as it was applied, here or elsewhere; 0: none.
  std::uint64_t refused() const { return refused_; }
  const std::string& refusal() const { return refusal_; }

 private:
  std::uint64_t count_ = 0;
  std::uint64_t last_id_ = 0;
  std::uint64_t begun_ = 0;
  std::uint64_t most_ = 0;        ///< orders that a rank had applied as all went on after a loss
  std::uint64_t calls_over_ = 0;  ///< calls of those up to this number aren't begun any more
  std::uint64_t refused_ = 0;
  std::string refusal_;
};

}  // namespace footplate
