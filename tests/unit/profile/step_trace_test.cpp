#include "runtime/profile/step_trace.h"

#include <ATen/ThreadLocalState.h>
#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "runtime/device/compute_device.h"

namespace footplate {
namespace {

using ::testing::Each;
using ::testing::Field;

void compute(std::size_t operations) {
  at::Tensor one = at::zeros({1});
  for (std::size_t i = 0; i < operations; ++i) one.neg_();
}

/// As a loader does, or an evaluation beside training.
TEST(StepTrace, LeavesOtherThreadsOutOfAccount) {
  StepTrace trace(host_device());
  ASSERT_TRUE(trace.begin());
  std::thread(compute, StepTrace::kMostEvents).join();
  EXPECT_FALSE(trace.is_full());
  at::zeros({1});
  const auto events = trace.end();
  EXPECT_FALSE(events.empty());
  EXPECT_THAT(events, Each(Field(&TraceEvent::row, "training")));
}

/// A backward pass on a device has a thread of its own, which works with the state of who has started it.
TEST(StepTrace, IsFullByOperationsOfItsBackwardThreads) {
  StepTrace trace(host_device());
  ASSERT_TRUE(trace.begin());
  EXPECT_FALSE(trace.is_full());
  const at::ThreadLocalState state;
  std::thread([&state] {
    const at::ThreadLocalStateGuard guard(state);
    compute(StepTrace::kMostEvents);
  }).join();
  EXPECT_TRUE(trace.is_full());
  EXPECT_EQ(trace.end().size(), StepTrace::kMostEvents);
  ASSERT_TRUE(trace.begin());
  EXPECT_FALSE(trace.is_full()) << "it counts from 0 on";
}

}  // namespace
}  // namespace footplate
