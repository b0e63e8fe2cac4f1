#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "runtime/orders/call_result.h"
#include "runtime/profile/step_trace.h"
#include "runtime/train/reporter.h"
#include "runtime/train/training.h"

namespace footplate {

/// profile.now: the same steps on every rank become traces, which rank 0 puts together in the run's folder
/// profiles/. The ranks write at the end of the last step, and go on once all have. It is given up where the
/// world changes. Training thread.
class ProfileDriver {
 public:
  /// Both outlive it.
  ProfileDriver(Training& training, const Reporter& reporter)
      : training_(training), reporter_(reporter), trace_(training.device) {}

  /// From the next step on. Errors (refused): one is under way, the run has no folder.
  Result<MeasurementBegun> begin(std::int64_t steps);

  void before_step();
  /// Collective after the last of the steps.
  void after_step();
  void give_up(const std::string& why);

 private:
  struct UnderWay {
    std::int64_t first = 0;
    std::int64_t steps = 0;
    std::int64_t recorded = 0;           ///< of them, by this rank
    bool has_begun = false;              ///< also where it couldn't
    std::uint64_t looked_up = 0;         ///< the last collective that was, or was launched before
    std::int64_t lost_collectives = 0;   ///< that the ledger had no longer
    std::vector<PhaseStay> phases = {};  ///< since it has begun
    std::vector<TraceEvent> collectives = {};
    std::vector<TraceEvent> events = {};
    std::string failure = {};
  };
  void take();
  void finish();
  void add_phases();
  void look_up_collectives();
  Result<StepProfile> write();
  std::filesystem::path parent() const;
  Result<void> write_part(const std::filesystem::path& folder, std::int64_t origin_ns) const;
  struct Extent {
    std::int64_t origin_ns = 0;
    std::int64_t recorded = 0;
    std::int64_t lost_collectives = 0;
    std::int64_t number = 0;
  };
  Result<Extent> agree_on_extent() const;

  Training& training_;
  const Reporter& reporter_;
  StepTrace trace_;
  std::optional<UnderWay> now_;
};

}  // namespace footplate
