#pragma once

#include <chrono>

#include "runtime/base/clock.h"
#include "runtime/comm/ledger.h"

namespace footplate {

/// How long a collective may take before somebody asks why (comm.timeout_s and its kin). A small operation
/// has a deadline of its own, the same in every phase: an evaluation may take long, the reduction of its sums
/// may not. A larger one has the longer one of its phase's and its size's.
struct Deadlines {
  using Duration = SteadyClock::duration;

  Duration training = std::chrono::minutes(10);    ///< from data to optimizer
  Duration evaluation = std::chrono::minutes(30);  ///< phases besides these two have none of their own
  Duration small = std::chrono::minutes(5);        ///< below 10 million elements
  Duration medium = std::chrono::minutes(15);      ///< below 100 million
  Duration large = std::chrono::minutes(30);

  Duration of(const LedgerEntry& entry) const;
  /// The setting that of(entry) comes from; of two equal ones the phase's, which concerns fewer operations.
  const char* setting_of(const LedgerEntry& entry) const;
  /// No operation has a shorter one.
  Duration shortest() const;

  bool operator==(const Deadlines&) const = default;
};

}  // namespace footplate
