#pragma once

namespace footplate {

/// For tests (FOOTPLATE_FAULT, runtime/base/fault.h): this rank dies or hangs before MPI starts, or after
/// it.
void inject_start_fault(int rank, bool has_mpi);

/// For tests: this rank comes late, or takes long to choose a checkpoint.
void delay_start(int rank);
void delay_choice(int rank);

}  // namespace footplate
