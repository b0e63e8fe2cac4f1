#pragma once

namespace footplate {

/// Of all programs; those of one build have the same.
inline constexpr auto kFootplateVersion = "0.2.0";

}  // namespace footplate
