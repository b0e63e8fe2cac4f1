#pragma once

#include <chrono>
#include <filesystem>
#include <optional>

namespace footplate {

// The supervisor of a run shows all hosts that it lives: it touches a file of the run directory. Its age is
// judged by the clock of the disk that holds it; clocks of hosts may differ by an hour.

inline constexpr std::chrono::seconds kLeaseIsRenewed{10};
inline constexpr std::chrono::seconds kLeaseEnds{60};  ///< after the last time

/// Best effort: a disk that is away may come back before the lease ends.
void renew_lease(const std::filesystem::path& run_directory);

/// At its end: nobody waits for it.
void end_lease(const std::filesystem::path& run_directory);

/// Of a run that was lost, and whose start came to nothing: it is lost again, at once.
void expire_lease(const std::filesystem::path& run_directory);

/// How long ago the supervisor has renewed it; nothing: there is none. One that is younger than half a minute
/// by this host's clock may be older, by as much as that clock is behind.
std::optional<std::chrono::seconds> age_of_lease(const std::filesystem::path& run_directory);
/// The same whatever this host's clock says, at the price of a file that is written.
std::optional<std::chrono::seconds> exact_age_of_lease(const std::filesystem::path& run_directory);

}  // namespace footplate
