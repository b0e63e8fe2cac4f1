#pragma once

#include <gtest/gtest.h>

#include <algorithm>
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

/// Elements of buffers with nothing in them, of one stripe, and of several, the last one short.
inline std::vector<std::int64_t> sizes_for(int ranks) {
  return {0, padded(1, ranks), padded(5000, ranks), padded(2 * stripe_of(ranks) + 100, ranks)};
}

/// What a rank has of the sum, then what all have.
inline void expect_shares_are_summed_and_gathered(int rank, int ranks, const OnShares& reduce_scatter,
                                                  const OnShares& all_gather) {
  for (const std::int64_t elements : sizes_for(ranks)) {
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

/// The share of the rank so many before is there then, and all else as it was.
inline void expect_shares_are_passed(Communicator& comm, int distance) {
  const int ranks = comm.world_size(), before = (comm.rank() + ranks - distance) % ranks;
  for (const std::int64_t elements : sizes_for(ranks)) {
    std::vector<float> values(static_cast<std::size_t>(elements)), wanted(values.size());
    for (std::int64_t i = 0; i < elements; ++i)
      values[static_cast<std::size_t>(i)] = wanted[static_cast<std::size_t>(i)] = number_of(comm.rank(), i);
    in_stripes(elements, ranks, [&](std::int64_t first, std::int64_t block) {
      for (std::int64_t i = first + before * block; i < first + (before + 1) * block; ++i)
        wanted[static_cast<std::size_t>(i)] = number_of(before, i);
      return true;
    });
    ASSERT_TRUE(comm.pass_shares({values.data(), elements, DataType::float32}, distance, "test")->wait());
    const auto [got, want] = std::mismatch(values.begin(), values.end(), wanted.begin());
    EXPECT_EQ(got, values.end()) << elements << " elements among " << ranks << ": rank " << comm.rank()
                                 << " has another one at " << got - values.begin();
  }
}

inline void expect_shares_are_passed(Communicator& comm) {
  expect_shares_are_passed(comm, 1);
  for (int distance = 2; distance < comm.world_size(); ++distance) expect_shares_are_passed(comm, distance);
}

}  // namespace footplate::cases
