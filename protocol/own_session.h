#pragma once

namespace footplate {

/// Session of the orders that the run gives itself: a stop by a signal or the time limit, and what comm.auto
/// = "apply" changes.
inline constexpr auto kOwnSession = "footplate";

}  // namespace footplate
