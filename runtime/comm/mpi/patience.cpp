#include "runtime/comm/mpi/patience.h"

#include <dlfcn.h>
#include <sched.h>
#include <sys/prctl.h>

#include <algorithm>
#include <chrono>
#include <ctime>

namespace footplate {
namespace {

using Clock = std::chrono::steady_clock;

/// Our own threads and console take less.
constexpr std::chrono::microseconds kLongYield{500};
/// How long waits nap after one: first, and at most. Then a yield shows whether the other is still there.
constexpr std::chrono::milliseconds kFirstNaps{20};
constexpr std::chrono::milliseconds kMostNaps{3000};
/// What comes after so long without one has nothing to do with it.
constexpr std::chrono::milliseconds kForgotten{3000};
constexpr timespec kNap{0, 20'000};
/// How much later than asked the kernel may wake a thread; 50 us unless told.
constexpr unsigned long kSlack_ns = 1'000;

void wait_a_moment() {
  thread_local Clock::time_point naps_until{};
  thread_local std::chrono::milliseconds naps{};
  const auto now = Clock::now();
  if (now < naps_until) {
    nanosleep(&kNap, nullptr);
    return;
  }
  sched_yield();
  if (Clock::now() - now < kLongYield) return;
  const bool again = now < naps_until + kForgotten;
  naps = again ? std::clamp(2 * naps, kFirstNaps, kMostNaps) : kFirstNaps;
  naps_until = now + naps;
  prctl(PR_SET_TIMERSLACK, kSlack_ns);
}

}  // namespace

bool nap_where_yields_take_long() {
  using Function = void (*)();
  void* function = dlsym(RTLD_DEFAULT, "opal_threads_pthreads_yield_fn");
  if (function != nullptr) *static_cast<Function*>(function) = wait_a_moment;
  return function != nullptr;
}

}  // namespace footplate
