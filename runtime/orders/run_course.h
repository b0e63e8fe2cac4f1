#pragma once

#include <cstdint>
#include <utility>

#include "protocol/settings.h"
#include "protocol/store.h"
#include "runtime/orders/step_gate.h"

namespace footplate {

/// What the orders that were applied have made of the run: settings, store, pause and end, the same at the
/// same step on all ranks. Guarded by the gate's mutex.
class RunCourse {
 public:
  RunCourse(Settings settings, Json store) : settings_(std::move(settings)), store_(std::move(store)) {}

  const Settings& settings() const { return settings_; }
  void set_settings(Settings settings) { settings_ = std::move(settings); }

  const Json& store() const { return store_; }
  /// A call of run.store. Error: too much is stored already.
  Result<void> keep(const Json& arguments) { return apply_store(store_, arguments); }

  bool paused() const { return paused_; }
  void pause(bool paused) { paused_ = paused; }

  /// An order ends this start of the run.
  void stop(Ending ending) {
    stopped_ = true;
    ending_ = std::move(ending);
  }
  /// The order that ended it counts no more.
  void take_stop_back() {
    stopped_ = false;
    ending_ = {};
  }
  bool stopped() const { return stopped_; }
  /// Whether `step` is not trained any more.
  bool at_end(std::int64_t step) const { return stopped_ || step >= settings_.integer("train.steps"); }

  /// All ranks are at the end.
  void finish() {
    finished_ = true;
    if (!stopped_) ending_.save = settings_.has("ckpt.every") && settings_.interval("ckpt.every").is_ever();
  }
  bool finished() const { return finished_; }
  const Ending& ending() const { return ending_; }

 private:
  Settings settings_;
  Json store_;
  bool paused_ = false;
  bool stopped_ = false;
  bool finished_ = false;
  Ending ending_;
};

}  // namespace footplate
