#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "run_files/failed_devices.h"
#include "runtime/rank/rank.h"
#include "runtime/rank/several_hosts.h"
#include "runtime/records/rank_records.h"
#include "runtime/train/trainer.h"

namespace footplate {

/// ControlOptions::why_lost: what the ranks said of their devices, or what is known of their hosts. Both
/// outlive it; null `hosts`: all ranks are on one, as far as is known when it is called.
std::function<std::string(const std::vector<int>& origins)> why_ranks_were_lost(
    const RankOptions& options, const std::unique_ptr<SeveralHosts>& hosts);

/// After a run() that failed: whether this rank's device computes nothing any more. Then it is told and kept,
/// so that this job takes it no more. Not where all ranks know why they end. Training thread.
bool has_lost_device(const Trainer& trainer, int rank, const RankOptions& options, RankRecords& records);

/// Ends this process as if it had been killed: the others go on without it (comm.on_loss).
[[noreturn]] void leave_alone();

}  // namespace footplate
