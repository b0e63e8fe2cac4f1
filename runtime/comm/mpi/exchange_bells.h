#pragma once

#include <memory>

#include "runtime/comm/mpi/mpi_session.h"
#include "runtime/comm/remote_bells.h"

namespace footplate {

/// Whether the ranks of the session are on several hosts: the same on all of them.
bool has_several_hosts(const MpiSession& session);

/// Bells of this rank that know those of all others. Collective over the ranks of the session, at the start
/// or once a rank has joined, over control(). Null where this rank can't be rung, or a rank was lost.
std::unique_ptr<RemoteBells> exchange_bells(MpiSession& session);

}  // namespace footplate
