#include "runtime/rank/start_faults.h"

#include <unistd.h>

#include <chrono>
#include <csignal>
#include <optional>
#include <thread>

#include "runtime/base/fault.h"

namespace footplate {
namespace {

void delay(const char* kind, int rank) {
  if (const auto late = fault(kind, rank))
    std::this_thread::sleep_for(std::chrono::milliseconds(late->get("ms").value_or(0)));
}

}  // namespace

void inject_start_fault(int rank, bool has_mpi) {
  const auto is_here = [&](const std::optional<Fault>& fault) {
    return fault && fault->get("mpi").value_or(0) == (has_mpi ? 1 : 0);
  };
  if (is_here(fault("start_die", rank))) std::raise(SIGKILL);
  while (is_here(fault("start_hang", rank))) ::pause();
}

void delay_start(int rank) {
  delay("late_start", rank);
}

void delay_choice(int rank) {
  delay("late_choice", rank);
}

}  // namespace footplate
