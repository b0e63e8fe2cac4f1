#pragma once

#include <chrono>

namespace footplate {

/// Between the result and the end of the last rank and of mpirun, which has been seen to hang there.
inline constexpr std::chrono::seconds kResultToExit{15};

/// The same after the loss of a host, whose daemon mpirun would wait for.
inline constexpr std::chrono::seconds kLostHostToExit{3};

/// The console ends itself when rank 0 is gone.
inline constexpr std::chrono::seconds kConsoleEnds{3};

}  // namespace footplate
