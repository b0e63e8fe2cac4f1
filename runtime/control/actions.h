#pragma once

namespace footplate {

/// The action by which all ranks let a guest in (world.h).
inline constexpr auto kAdmit = "comm.admit";

/// The action by which NCCL's communicators are made anew as they are.
inline constexpr auto kRebuild = "nccl.rebuild";

}  // namespace footplate
