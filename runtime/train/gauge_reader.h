#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "protocol/result.h"
#include "runtime/base/thread.h"
#include "runtime/device/gauges.h"

namespace footplate {

/// Reads a device's gauges again and again on a thread of its own, so that nobody waits for its driver.
class GaugeReader {
 public:
  using Open = std::function<Result<std::unique_ptr<Gauges>>()>;

  /// `open` runs on that thread, and may refer to what lives as long as the process. Null from it: there are
  /// no gauges.
  explicit GaugeReader(Open open);
  /// Ends the thread, or leaves it behind where the driver is stuck.
  ~GaugeReader();
  GaugeReader(const GaugeReader&) = delete;
  GaugeReader& operator=(const GaugeReader&) = delete;

  /// Nothing: there is none yet, or none of late.
  std::optional<GaugeReading> newest() const;
  /// Why there will be none, once; empty: nothing is known against it.
  std::string take_refusal();

 private:
  struct Shared;
  static void serve(const std::shared_ptr<Shared>& shared, const Open& open);
  static void read_on(const std::shared_ptr<Shared>& shared, Gauges& gauges);

  std::shared_ptr<Shared> shared_;
  Thread thread_;
};

}  // namespace footplate
