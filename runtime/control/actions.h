#pragma once

namespace footplate {

/// The action by which all ranks let a guest in (world.h).
inline constexpr auto kAdmit = "comm.admit";

}  // namespace footplate
