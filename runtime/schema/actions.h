#pragma once

namespace footplate {

// What control does by itself.
inline constexpr auto kPause = "run.pause";
inline constexpr auto kResume = "run.resume";
inline constexpr auto kStop = "run.stop";
inline constexpr auto kRestart = "run.restart";
inline constexpr auto kStore = "run.store";

/// The action by which all ranks let a joining rank in (world.h).
inline constexpr auto kAdmit = "comm.admit";

/// The action that goes back to a checkpoint: the ranks end, and are started again from it.
inline constexpr auto kLoad = "ckpt.load";
inline constexpr auto kLoadEnding = "load";  ///< Ending::reason then

/// The action that makes new NCCL communicators, with the settings as they are.
inline constexpr auto kRebuild = "nccl.rebuild";

/// Measures NCCL's collectives for some steps; returns what the last measurement found.
inline constexpr auto kMeasure = "nccl.measure";
inline constexpr auto kProfile = "nccl.profile";

/// Records the operations of some steps, on all ranks (profile_driver.h).
inline constexpr auto kProfileSteps = "profile.now";

/// A line for the journal and everybody who is attached: what somebody noticed, or a trial's result.
inline constexpr auto kNote = "run.note";

}  // namespace footplate
