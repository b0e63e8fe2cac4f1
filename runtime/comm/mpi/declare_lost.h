#pragma once

namespace footplate {

/// Tells Open MPI, in this process, that a rank of MPI_COMM_WORLD is lost: whatever waits for it returns
/// MPIX_ERR_PROC_FAILED, as after a kill that mpirun has reported. Of a host that is off nobody reports.
/// Every rank that is left has to call it. Any thread. Returns false, and changes nothing, where this Open
/// MPI has not what 5.0 has (functions of its own libraries, looked up by name).
bool declare_lost(int rank);

}  // namespace footplate
