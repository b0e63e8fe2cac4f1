#pragma once

namespace footplate {

/// Makes the layers of include/footplate/layers.h operators of LibTorch, once for the process. Before a task
/// is loaded that may use them; any thread.
void register_layers();

}  // namespace footplate
