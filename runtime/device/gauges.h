#pragma once

#include <chrono>
#include <optional>

namespace footplate {

/// What a device tells of itself, whoever uses it. Nothing: it doesn't.
struct GaugeReading {
  std::optional<double> utilisation;  ///< percent of the last moment in which it computed anything
  std::optional<double> memory_mib;   ///< in use
  std::optional<double> power_w;
  std::optional<double> temperature_c;
};

/// Where that is read. One thread at a time.
class Gauges {
 public:
  virtual ~Gauges() = default;
  /// May take milliseconds, or not come back from a driver that is stuck.
  virtual GaugeReading read() = 0;
  /// There is nothing new before that.
  virtual std::chrono::milliseconds renewed_every() const = 0;
};

}  // namespace footplate
