#pragma once

#include <string>

#include "protocol/json.h"
#include "runtime/comm/mpi/session.h"

namespace footplate {

/// "Open MPI v5.0.11": the MPI library in this process. May be called before MPI starts.
std::string mpi_library();

/// Whether this MPI was built with the fault-tolerance extension (ULFM).
bool has_fault_tolerance();

/// Collective, in a world of at least two ranks: the last one is killed (SIGKILL), and the others notice it
/// in an all-reduce and make a communicator without it. For doctor; nothing but leaving the process (_exit)
/// is left to do afterwards, since MPI_Finalize may wait for the dead one. {"survivors", "noticed_ms",
/// "recovered_ms"}. Errors: this MPI lacks the extension, or a call of it fails.
Result<Json> lose_a_rank(MpiSession& session);

}  // namespace footplate
