#pragma once

namespace footplate {

/// How a thread of this process that finds nothing to do within MPI leaves the core to others: by yielding,
/// as Open MPI does, but by short naps for a while after a yield that took long. What then ran may be at
/// idle priority (a busy script): after a yield it keeps the core until the kernel's next tick, up to 4 ms,
/// while a thread that wakes takes the core back at once. Call it after MPI has started. Returns
/// false, and changes nothing, where Open MPI has no such function to replace (it is what
/// threads_pthreads_yield_strategy of 5.0 chooses).
bool nap_where_yields_take_long();

}  // namespace footplate
