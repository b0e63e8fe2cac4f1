#pragma once

#include <cstdint>
#include <map>
#include <string>

namespace footplate {

/// Where this rank's training thread meets the others' (StepGate::meet): numbered 1, 2, 3, … alike on all
/// ranks; rank 0 decides each (RankBarrier). Guarded by the gate's mutex.
class Meetings {
 public:
  /// This rank comes to the next one: its number.
  std::uint64_t come() { return ++last_; }
  /// An error ends it for whoever comes later, too; empty: all are there.
  void decide(std::uint64_t ticket, const std::string& error) { decided_[ticket] = error; }
  bool is_decided(std::uint64_t ticket) const { return decided_.contains(ticket); }
  /// Once: what was decided.
  std::string take(std::uint64_t ticket) { return decided_.extract(ticket).mapped(); }
  /// Whether one was decided that this rank hasn't come to.
  bool missed() const { return !decided_.empty() && decided_.rbegin()->first > last_; }
  /// A new world counts from the start.
  void reset() {
    decided_.clear();
    last_ = 0;
  }

 private:
  std::uint64_t last_ = 0;                        ///< this rank has come to
  std::map<std::uint64_t, std::string> decided_;  ///< and not come to yet
};

}  // namespace footplate
