#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "runtime/orders/step_gate.h"

namespace footplate {

/// The call that the training thread is in, and the calls that were cancelled, perhaps before they began.
/// Guarded by the gate's mutex.
class RunningCall {
 public:
  void begin(std::uint64_t order, std::size_t call, std::string action = "") {
    running_ = Key{order, call};
    action_ = std::move(action);
    deferred_ = false;
  }
  void end() { running_.reset(); }
  /// Its outcome comes later. Nothing: none runs.
  std::optional<DeferredCall> defer() {
    if (!running_) return std::nullopt;
    deferred_ = true;
    return DeferredCall{running_->first, running_->second, action_};
  }
  bool is_deferred() const { return deferred_; }
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
  std::string action_;
  bool deferred_ = false;
  std::set<Key> cancelled_;
};

}  // namespace footplate
