#pragma once

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <array>
#include <random>
#include <vector>

#include "runtime/cuda/plugin_abi.h"

namespace footplate::test {

/// A table that this program exports, found as NCCL finds one with STATIC_PLUGIN.
template <class Table>
const Table* exported(const char* name) {
  return static_cast<const Table*>(::dlsym(::dlopen(nullptr, RTLD_NOW), name));
}

/// NCCL's table of costs; in one piece, as NCCL has it.
class Costs {
 public:
  static constexpr int kCells = nccl_abi::kAlgorithms * nccl_abi::kProtocols;

  /// Every third or so cell can't be had, the others cost something.
  static Costs random(std::mt19937_64& random) {
    Costs costs;
    for (float& cell : costs.cells)
      cell = random() % 3 == 0 ? -1.0F : static_cast<float>(1 + random() % 1000) / 16;
    return costs;
  }

  float** pointer() { return reinterpret_cast<float**>(cells.data()); }
  float& at(int algorithm, int protocol) {
    return cells.at(static_cast<std::size_t>(algorithm * nccl_abi::kProtocols + protocol));
  }

  /// What NCCL takes then: the first cell with the least cost that isn't negative; -1: none.
  int choice() const {
    int best = -1;
    float least = 3600000000.0F;
    for (int cell = 0; cell < kCells; ++cell) {
      const float cost = cells[static_cast<std::size_t>(cell)];
      if (cost >= 0 && cost < least) {
        best = cell;
        least = cost;
      }
    }
    return best;
  }

  std::array<float, kCells> cells{};
};

}  // namespace footplate::test
