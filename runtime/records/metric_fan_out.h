#pragma once

#include <functional>
#include <utility>
#include <vector>

#include "runtime/state/ports.h"

namespace footplate {

/// Hands each line of metrics to several receivers, in the order in which they were added: the trainer writes
/// it once. What a rank that doesn't write keeps goes to one. Training thread.
class MetricFanOut final : public Sink {
 public:
  /// As Sink::write.
  using Receiver = std::function<void(const Json& metrics)>;

  void add(Receiver receiver) { receivers_.push_back(std::move(receiver)); }
  void keep_with(Receiver receiver) { keeper_ = std::move(receiver); }
  void write(const Json& metrics) override {
    for (const Receiver& receiver : receivers_) receiver(metrics);
  }
  void keep(const Json& metrics) override {
    if (keeper_) keeper_(metrics);
  }

 private:
  std::vector<Receiver> receivers_;
  Receiver keeper_;
};

}  // namespace footplate
