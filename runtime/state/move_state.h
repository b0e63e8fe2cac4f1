#pragma once

#include <vector>

#include "protocol/result.h"
#include "runtime/comm/communicator.h"
#include "runtime/state/state_table.h"

namespace footplate {

/// Brings state to where it is wanted, bit for bit: each rank says what it gives of persistent tensors, and
/// what it is to have of them, whole ones or shards. Every element that is wanted anywhere is given by one
/// rank. `wanted` has each of the tensors on every rank, of some perhaps a shard without elements; an entry
/// that is both given and wanted may be the same memory. Takes some MiB of the host's memory, whatever the
/// state's size. Collective; training thread. Errors: those of the collectives; then what is wanted is
/// undefined.
Result<void> move_state(Communicator& communicator, const std::vector<StateEntry>& given,
                        const std::vector<StateEntry>& wanted);

}  // namespace footplate
