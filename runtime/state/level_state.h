#pragma once

#include "protocol/json.h"
#include "protocol/result.h"
#include "runtime/comm/communicator.h"
#include "runtime/state/state_table.h"

namespace footplate {

/// All ranks take the state of `source`, bit for bit: every replicated tensor of `state`. Returns the
/// source's `others`: what it has besides. Collective; training thread. Errors: those of the collectives;
/// then the state of a rank that isn't the source may be of both.
Result<Json> level_state(Communicator& communicator, const StateTable& state, int source, const Json& others);

}  // namespace footplate
