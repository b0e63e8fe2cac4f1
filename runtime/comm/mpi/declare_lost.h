#pragma once

#include <cstdint>
#include <optional>

namespace footplate {

/// Open MPI's name of a process, the same in all processes: its job, and its number in it. One that has
/// joined a run is of a job of its own.
struct MpiProcess {
  std::uint32_t job = 0;
  std::uint32_t number = 0;
};

/// This process. Nothing where this Open MPI has not what 5.0 has (names of its own libraries).
std::optional<MpiProcess> own_mpi_process();

/// Tells Open MPI, in this process, that another one is lost: whatever waits for it returns
/// MPIX_ERR_PROC_FAILED, as after a kill that mpirun has reported. Of a host that is off nobody reports.
/// Every rank that is left has to call it. Any thread. Returns false, and changes nothing, where this Open
/// MPI has not what 5.0 has (functions of its own libraries, looked up by name).
bool declare_lost(const MpiProcess& process);

}  // namespace footplate
