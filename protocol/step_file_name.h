#pragma once

namespace footplate {

/// In a run's private folder (`$FOOTPLATE_DOORBELL_DIR`): the step rank 0 is at, one std::int64_t in the
/// machine's byte order. Written by rank 0, read by whoever settles a run that was killed.
inline constexpr auto kStepFileName = "step";

}  // namespace footplate
