#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdint>

#include "runtime/comm/batch_all_reduce.h"
#include "runtime/comm/ledger.h"

namespace footplate::cases {

/// Sums of an evaluation as they come: mixed sizes and types.
struct Metrics {
  std::array<float, 5> loss{};
  std::int64_t correct = 0;
  std::array<double, 3> squares{};
  std::uint8_t flag = 0;
  float last = 0;

  explicit Metrics(int factor) {
    for (std::size_t i = 0; i < loss.size(); ++i)
      loss[i] = static_cast<float>(factor) * static_cast<float>(i);
    for (std::size_t i = 0; i < squares.size(); ++i) squares[i] = factor * 0.5 * static_cast<double>(i);
    correct = factor * (std::int64_t{1} << 40);
    flag = static_cast<std::uint8_t>(factor);
    last = static_cast<float>(10 * factor);
  }

  std::vector<Buffer> buffers() {
    return {{loss.data(), 5, DataType::float32},
            {&correct, 1, DataType::int64},
            {squares.data(), 3, DataType::float64},
            {nullptr, 0, DataType::float32},
            {&flag, 1, DataType::uint8},
            {&last, 1, DataType::float32}};
  }

  bool operator==(const Metrics&) const = default;
};

/// On any backend, on all ranks at once: every buffer holds its own sum, and each type took one reduction.
inline void expect_batches_are_summed(Communicator& communicator, const Ledger& ledger) {
  Metrics mine(communicator.rank() + 1);
  const auto before = ledger.current().sequence;
  ASSERT_TRUE(batch_all_reduce(communicator, mine.buffers(), ReduceOp::sum, "test")->wait());
  EXPECT_EQ(ledger.current().sequence, before + 4) << "one reduction for each type";
  const int ranks = communicator.world_size();
  EXPECT_EQ(mine, Metrics(ranks * (ranks + 1) / 2));

  Metrics largest(communicator.rank() + 1);
  ASSERT_TRUE(batch_all_reduce(communicator, largest.buffers(), ReduceOp::max, "test")->wait());
  EXPECT_EQ(largest, Metrics(ranks));
  EXPECT_TRUE(batch_all_reduce(communicator, {}, ReduceOp::sum, "test")->wait());
}

}  // namespace footplate::cases
