#pragma once

#include <chrono>
#include <cstddef>
#include <vector>

#include "protocol/messages/reports.h"

namespace footplate {

/// How long threads are waited for.
inline constexpr std::chrono::milliseconds kStackPatience{200};

/// What all of a rank's threads may take as text.
inline constexpr std::size_t kMostStackBytes = 256 * 1024;

/// The signal whose handler records its thread's frames: SIGRTMIN + 4.
int stack_signal();

/// Installs the handler, loads what it needs so that nothing is allocated or loaded in it, and starts the
/// thread that names frames. As early as possible, again does no harm; all of the process. Any thread.
void prepare_stacks();

/// The stacks of all threads of this process, by a signal to each: no thread has to help, and one that is in
/// the middle of something goes on with it (the handler takes no lock and allocates nothing; system calls
/// are restarted, or end with EINTR as they may at any time). A thread that doesn't answer in time has a
/// note, and where in the kernel it waits. The main thread is the first, under the name `training`. Takes
/// some milliseconds, at most `patience` and kNamePatience longer: where a disk doesn't answer that has a
/// library, its frames are "library+offset". Any thread, one at a time.
std::vector<ThreadPlace> take_stacks(std::chrono::milliseconds patience = kStackPatience);

/// Takes from a list of threads what is more than `bytes` as text: frames from the middle of each stack, then
/// threads from the end.
void trim_stacks(std::vector<ThreadPlace>& threads, std::size_t bytes = kMostStackBytes);

}  // namespace footplate
