#include "runtime/base/cores.h"

#include <sched.h>

#include <algorithm>
#include <thread>

#include "protocol/network/memory.h"

namespace footplate {

int read_usable_cores(const std::filesystem::path& root) {
  cpu_set_t bound;  // of 1024 cores; where there are more the call fails
  int cores = ::sched_getaffinity(0, sizeof(bound), &bound) == 0
                  ? CPU_COUNT(&bound)
                  : static_cast<int>(std::thread::hardware_concurrency());
  if (const auto time = read_group_limits(root).cores) cores = std::min(cores, static_cast<int>(*time));
  return std::max(1, cores);
}

int usable_cores() {
  static const int cores = read_usable_cores();
  return cores;
}

}  // namespace footplate
