#pragma once

#include <sys/types.h>

#include <chrono>
#include <string>
#include <vector>

#include "protocol/json.h"

namespace footplate {

/// One thread of this process: where it is, innermost frame first.
struct ThreadStack {
  std::string name;  ///< as top shows it; of the main thread `training`
  pid_t tid = 0;
  std::string state;                ///< of /proc: "running", "sleeping", "disk sleep", …
  std::vector<std::string> frames;  ///< "…" where some are left out; empty where the thread doesn't answer
  std::string note;                 ///< why it doesn't, and where in the kernel it waits; empty otherwise
};

/// How long threads are waited for.
inline constexpr std::chrono::milliseconds kStackPatience{200};

/// The signal whose handler records its thread's frames: SIGRTMIN + 4.
int stack_signal();

/// Installs the handler, and loads what it needs so that nothing is allocated or loaded in it. As early as
/// possible, again does no harm; all of the process. Any thread.
void prepare_stacks();

/// The stacks of all threads of this process, by a signal to each: no thread has to help, and one that is in
/// the middle of something goes on with it (the handler takes no lock and allocates nothing; system calls
/// are restarted, or end with EINTR as they may at any time). A thread that doesn't answer in time has a
/// note. The main thread is the first. Takes some milliseconds, at most `patience` longer. Any thread, one
/// at a time.
std::vector<ThreadStack> take_stacks(std::chrono::milliseconds patience = kStackPatience);

/// [{"name","tid","state","frames","note"?}], at most so many bytes of text (trim_stacks).
Json stacks_to_json(const std::vector<ThreadStack>& threads);

/// Takes from a list of threads what is more than `bytes` as text: frames from the middle of each stack, then
/// threads from the end.
void trim_stacks(Json& threads, std::size_t bytes);

}  // namespace footplate
