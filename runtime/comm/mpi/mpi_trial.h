#pragma once

#include <string>

#include "protocol/json.h"
#include "runtime/comm/mpi/mpi_session.h"

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

/// Collective, in a world of two ranks: messages there and back between them. {"hosts", "gb_per_s",
/// "latency_us"}: bandwidth of 16 MB one way, and half the time that 8 bytes take there and back, each the
/// best of some. Errors: MPI's.
Result<Json> measure_link(MpiSession& session);

}  // namespace footplate
