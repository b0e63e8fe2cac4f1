#pragma once

#include <memory>
#include <vector>

#include "runtime/comm/communicator.h"

namespace footplate {

/// Reduces many small buffers of mixed sizes and types together: they are copied into one buffer for each
/// type among them, reduced by one all_reduce each, and wait() copies the results back. A small all_reduce
/// costs its latency, not its bytes (scripts/bench collectives).
///
/// All ranks give buffers of the same sizes and types in the same order. Returns at once, as all_reduce does.
/// Where a reduction fails or a deadline passes, every buffer still holds this rank's own values. Buffers are
/// in host memory; a device's backend groups its launches instead.
std::unique_ptr<Work> batch_all_reduce(Communicator& communicator, const std::vector<Buffer>& buffers,
                                       ReduceOp op, const char* name);

}  // namespace footplate
