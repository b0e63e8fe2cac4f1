#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <vector>

#include "runtime/comm/communicator.h"
#include "runtime/comm/shares.h"

// The contract of what is cut among ranks, for every backend; on all ranks at once.
namespace footplate::cases {

/// Whole numbers, small enough for sums to be exact, and not the same at any two places near each other.
inline float number_of(int rank, std::int64_t element) {
  return static_cast<float>(rank + 1) * static_cast<float>(element % 1001);
}

/// The first element of [first, end) that isn't the sum over the ranks; `end`: none.
inline std::int64_t first_that_isnt_summed(const std::vector<float>& values, int ranks, std::int64_t first,
                                           std::int64_t end) {
  const int of_all = ranks * (ranks + 1) / 2;
  while (first < end && values[static_cast<std::size_t>(first)] == number_of(of_all - 1, first)) ++first;
  return first;
}

/// Whether an operation on a buffer was done.
using OnShares = std::function<bool(const Buffer&)>;

/// Buffers of one stripe or several, the last one short: what a rank has of the sum, then what all have.
inline void expect_shares_are_summed_and_gathered(int rank, int ranks, const OnShares& reduce_scatter,
                                                  const OnShares& all_gather) {
  for (const std::int64_t elements :
       {std::int64_t{0}, padded(1, ranks), padded(5000, ranks), padded(2 * stripe_of(ranks) + 100, ranks)}) {
    std::vector<float> values(static_cast<std::size_t>(elements));
    for (std::int64_t i = 0; i < elements; ++i) values[static_cast<std::size_t>(i)] = number_of(rank, i);
    const Buffer buffer{values.data(), elements, DataType::float32};
    ASSERT_TRUE(reduce_scatter(buffer));
    in_stripes(elements, ranks, [&](std::int64_t first, std::int64_t block) {
      const std::int64_t mine = first + rank * block;
      EXPECT_EQ(first_that_isnt_summed(values, ranks, mine, mine + block), mine + block) << elements;
      // What others have is theirs to give.
      for (std::int64_t i = first; i < first + block * ranks; ++i)
        if (i < mine || i >= mine + block) values[static_cast<std::size_t>(i)] = -1;
      return true;
    });
    ASSERT_TRUE(all_gather(buffer));
    EXPECT_EQ(first_that_isnt_summed(values, ranks, 0, elements), elements);
  }
}

inline void expect_shares_are_summed_and_gathered(Communicator& comm) {
  expect_shares_are_summed_and_gathered(
      comm.rank(), comm.world_size(),
      [&](const Buffer& buffer) {
        return comm.reduce_scatter(buffer, ReduceOp::sum, "test")->wait().has_value();
      },
      [&](const Buffer& buffer) { return comm.all_gather_shares(buffer, "test")->wait().has_value(); });
}

}  // namespace footplate::cases
