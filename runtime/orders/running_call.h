#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <utility>

namespace footplate {

/// The call that the training thread is in, and the calls that were cancelled, perhaps before they began.
/// Guarded by the gate's mutex.
class RunningCall {
 public:
  void begin(std::uint64_t order, std::size_t call) { running_ = Key{order, call}; }
  void end() { running_.reset(); }
  bool is_of(std::uint64_t order) const { return running_ && running_->first == order; }
  bool is_cancelled() const { return running_ && cancelled_.contains(*running_); }

  void cancel(std::uint64_t order, std::size_t call) { cancelled_.insert({order, call}); }
  /// Whichever runs.
  void cancel() {
    if (running_) cancelled_.insert(*running_);
  }
  /// The calls of `order` are over.
  void forget(std::uint64_t order) {
    cancelled_.erase(cancelled_.lower_bound({order, 0}), cancelled_.lower_bound({order + 1, 0}));
  }

 private:
  using Key = std::pair<std::uint64_t, std::size_t>;  ///< order, call in it

  std::optional<Key> running_;
  std::set<Key> cancelled_;
};

}  // namespace footplate
