#pragma once

#include <memory>

#include "runtime/comm/mpi/mpi_session.h"
#include "runtime/comm/remote_bells.h"

namespace footplate {

/// Bells of this rank that know those of all others. Collective over the ranks of the session, at the start,
/// over control(). Null where this rank can't be rung, or a rank was lost.
std::unique_ptr<RemoteBells> exchange_bells(MpiSession& session);

}  // namespace footplate
