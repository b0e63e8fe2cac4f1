#pragma once

#include "protocol/result.h"
#include "runtime/comm/communicator.h"
#include "runtime/state/state_table.h"

namespace footplate {

/// Whether all ranks begin with the same parameters and states. Collective, training thread; one pass over
/// the state. Error (usage), the same on all: which ranks have others than rank 0, and the first tensor in
/// which each differs; the collective's.
Result<void> same_state(Communicator& communicator, const StateTable& state);

}  // namespace footplate
