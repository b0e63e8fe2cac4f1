#pragma once

#include <filesystem>

namespace footplate {

// Of a start on several hosts: what becomes of its ranks on those that this one, which has `footplate run`
// and its mpirun, doesn't reach.

/// Whether they go on without those of this host: they have claimed a term that it isn't in. mpirun here may
/// still be theirs.
bool is_left_out(const std::filesystem::path& run_directory, int start);

/// The same where hosts have lost each other, and not ranks alone: mpirun here is nobody's any more.
bool is_cut_off(const std::filesystem::path& run_directory, int start);

/// As is_left_out() once mpirun here has ended, and whether one of them leads. Ranks whose mpirun is gone
/// save and write the result, or one of them leads the others and renews the lease; or their daemon is gone,
/// too, and they end within seconds (MPI does that). Waits for what becomes of them, kOthersClaim and
/// kLeaseIsRenewed at most.
bool goes_on_elsewhere(const std::filesystem::path& run_directory, int start);

}  // namespace footplate
