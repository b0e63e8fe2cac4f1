#include "console/lua/session/idle_priority.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstring>

namespace footplate::lua {
namespace {

using Seconds = Allowance::Seconds;

/// Of the time that passes, what comes back.
constexpr double kShare = 0.05;
/// A short chunk is served at once even after a long one.
constexpr Seconds kAtLeast{0.005};
/// The kernel looks at these timers at its ticks, 1 to 4 ms apart.
constexpr Seconds kShortest{0.001};

std::atomic<Allowance*> g_watched{nullptr};

Seconds read_clock(clockid_t clock) {
  timespec time{};
  clock_gettime(clock, &time);
  return Seconds(static_cast<double>(time.tv_sec)) + std::chrono::nanoseconds(time.tv_nsec);
}

void set_timer(timer_t timer, Seconds value) {
  constexpr double kPerSecond = 1e9;
  const auto whole = static_cast<time_t>(value.count());
  itimerspec at{};
  at.it_value.tv_sec = whole;
  at.it_value.tv_nsec = static_cast<long>((value.count() - static_cast<double>(whole)) * kPerSecond);
  timer_settime(timer, 0, &at, nullptr);
}

}  // namespace

/// In the watched thread, between two of its instructions: only calls that are safe in signal handlers.
void on_allowance_used(int /*signal*/) {
  const int error = errno;
  if (Allowance* allowance = g_watched.load(std::memory_order_relaxed)) allowance->look();
  errno = error;
}

Allowance::Allowance(Seconds burst) : burst_(burst), left_(burst), wall_(read_clock(CLOCK_MONOTONIC)) {
  struct sigaction action {};
  action.sa_handler = on_allowance_used;
  action.sa_flags = SA_RESTART;
  sigaction(SIGRTMIN, &action, nullptr);
}

void Allowance::begin() {
  cpu_ = read_clock(CLOCK_THREAD_CPUTIME_ID);
  settle();
  left_ = std::max(left_, std::min(burst_, kAtLeast));
}

void Allowance::settle() {
  const Seconds cpu = read_clock(CLOCK_THREAD_CPUTIME_ID);
  const Seconds wall = read_clock(CLOCK_MONOTONIC);
  left_ = std::clamp(left_ + kShare * (wall - wall_) - (cpu - cpu_), Seconds(0), burst_);
  cpu_ = cpu;
  wall_ = wall;
}

void Allowance::look() {
  settle();
  if (left_ > Seconds(0)) return set_timer(timer_, std::max(left_, kShortest));
  const sched_param none{};
  sched_setscheduler(0, SCHED_IDLE, &none);
}

Allowance::Watch::Watch(Allowance& allowance) : allowance_(allowance) {
  sigevent event{};
  event.sigev_notify = SIGEV_THREAD_ID;
  event.sigev_signo = SIGRTMIN;
  event._sigev_un._tid = gettid();
  armed_ = timer_create(CLOCK_THREAD_CPUTIME_ID, &event, &allowance_.timer_) == 0;
  allowance_.begin();
  g_watched.store(&allowance_, std::memory_order_relaxed);
  if (armed_) set_timer(allowance_.timer_, std::max(allowance_.left_, kShortest));
}

Allowance::Watch::~Watch() {
  // A signal that is on its way finds nobody.
  g_watched.store(nullptr, std::memory_order_relaxed);
  std::atomic_signal_fence(std::memory_order_seq_cst);
  if (armed_) timer_delete(allowance_.timer_);
  allowance_.settle();
}

}  // namespace footplate::lua
