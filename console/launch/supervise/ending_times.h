#pragma once

#include <chrono>

namespace footplate {

/// Between the result and the end of the last rank and of mpirun, which has been seen to hang there.
inline constexpr std::chrono::seconds kResultToExit{15};

/// The same after the loss of a host, whose daemon mpirun would wait for.
inline constexpr std::chrono::seconds kLostHostToExit{3};

/// Until ranks of other hosts have written the result, or one of them leads the others, once mpirun is gone.
inline constexpr std::chrono::seconds kOthersClaim{5};

/// Since it renewed the lease; it does that every three seconds (runtime/rank/fence_watch.cpp).
inline constexpr std::chrono::seconds kLeaderIsSilent{6};

/// The console ends itself when rank 0 is gone.
inline constexpr std::chrono::seconds kConsoleEnds{3};

}  // namespace footplate
