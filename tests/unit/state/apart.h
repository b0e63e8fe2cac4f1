#pragma once

#include <cstddef>
#include <cstring>

#include "runtime/state/state_table.h"

namespace footplate::test {

/// A device's memory: the host reaches it by copies alone.
struct Apart final : StateMemory {
  void copy_out(void* to, const void* from, std::size_t bytes) override { std::memcpy(to, from, bytes); }
  void copy_in(void* to, const void* from, std::size_t bytes) override {
    ++taken;
    std::memcpy(to, from, bytes);
  }
  int taken = 0;
};

}  // namespace footplate::test
