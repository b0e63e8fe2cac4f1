#pragma once

#include <functional>
#include <string>
#include <vector>

#include "protocol/messages/run_result.h"
#include "run_files/failed_devices.h"
#include "runtime/rank/rank.h"
#include "runtime/records/rank_records.h"
#include "runtime/train/trainer.h"

namespace footplate {

/// Which rank's device has failed.
struct RankOfDevice {
  int rank = 0, ranks = 1;
  std::string host;
};

/// ControlOptions::why_lost. `options` outlive it.
std::function<std::string(const std::vector<int>& origins)> what_lost_ranks_said(const RankOptions& options);

/// Ends this process, whose device computes nothing any more, as if it had been killed: the others go on
/// without it (comm.on_loss), and this job takes the device no more. Where it was the only rank, the start
/// ends resumable, with `result`. Training thread.
[[noreturn]] void leave_with_failed_device(const DeviceFailure& failure, const RankOfDevice& of,
                                           const RankOptions& options, RankRecords& records,
                                           RunResult result);

}  // namespace footplate
