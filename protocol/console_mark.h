#pragma once

namespace footplate {

inline constexpr auto kPartVariable = "FOOTPLATE_PART";
/// In the environment of a run's console and of everything it starts: they share the session of mpirun and
/// the ranks, and are to end after them.
inline constexpr auto kConsoleMark = "FOOTPLATE_PART=console";

}  // namespace footplate
