#pragma once

namespace footplate {

/// The calling thread works beside training: where both want the same core, training gets about nine tenths
/// of it, and once training waits the core is free. Where the system doesn't allow it the thread runs as
/// others.
void give_way_to_training();

}  // namespace footplate
