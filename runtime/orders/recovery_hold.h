#pragma once

#include <optional>
#include <string>
#include <utility>

#include "runtime/orders/steerable.h"
#include "runtime/orders/step_gate.h"

namespace footplate {

/// A loss, as this rank's training thread meets it: it stands from the loss until the ranks that are left
/// have agreed how to go on, or know that they can't. Guarded by the gate's mutex.
class RecoveryHold {
 public:
  /// The training thread stands, or is to stand as soon as it comes to the gate.
  bool holds() const { return holds_; }
  void hold() { holds_ = true; }
  /// Training thread: the loss interrupted `what`.
  void interrupt(StepGate::Interrupted what, const std::string& tag) {
    if (what == StepGate::Interrupted::save) save_again_ = tag;
    whole_ = whole_ && what != StepGate::Interrupted::state;
    holds_ = true;
  }
  /// Control thread: a loss, perhaps another one before the training thread has gone on.
  void hold_again() {
    holds_ = true;
    if (rejoin_ && rejoin_->save) save_again_ = rejoin_->tag;
    rejoin_.reset();
  }
  /// In a process that joins a run: its state is nobody's.
  void join() {
    whole_ = false;
    holds_ = true;
  }
  void give_up(const std::string& why) {
    given_up_ = why;
    holds_ = true;
  }
  void resume(const Rejoin& rejoin) {
    interruption_.clear();
    save_again_.reset();
    rejoin_ = rejoin;
  }

  /// Whether the training thread's wait is over: resumed, or given up.
  bool is_decided() const { return is_resumed() || !given_up_.empty(); }
  /// Resumed, and not gone on yet.
  bool is_resumed() const { return rejoin_.has_value(); }
  /// Training thread, once resumed: goes on.
  Rejoin take() {
    holds_ = false;
    Rejoin rejoin = *std::exchange(rejoin_, std::nullopt);
    rejoin.whole = whole_;
    if (rejoin.behind) whole_ = false;
    return rejoin;
  }
  /// It is level with the others.
  void set_whole() { whole_ = true; }

  /// Whether this rank's state is that of one step.
  bool is_whole() const { return whole_; }
  /// The tag of a save that the loss interrupted.
  const std::optional<std::string>& save_again() const { return save_again_; }
  /// Why nobody can go on; empty: somebody can, as far as is known.
  const std::string& given_up() const { return given_up_; }

  /// Why operations are interrupted though no rank died, until resumed; else empty.
  const std::string& interruption() const { return interruption_; }
  void set_interruption(std::string why) { interruption_ = std::move(why); }

 private:
  bool holds_ = false;
  bool whole_ = true;
  std::optional<std::string> save_again_;
  std::string given_up_;
  std::string interruption_;
  std::optional<Rejoin> rejoin_;
};

}  // namespace footplate
