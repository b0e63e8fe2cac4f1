// Gradients of which each rank keeps its share, at the reducer's own door.
#include "runtime/train/bucket_reducer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <ATen/ops/zeros.h>

#include <functional>
#include <optional>
#include <stdexcept>

#include "runtime/comm/shares.h"
#include "tests/unit/train/fixtures.h"

namespace footplate {
namespace {

using ::testing::HasSubstr;

constexpr int kRanks = 2;

/// The parameters of a rank, and what it keeps of their gradients. Each parameter is a stripe: a bucket.
struct Reduced {
  Reduced(Communicator& the_communicator, Progress& progress, int count)
      : communicator(the_communicator), timer(progress) {
    for (int i = 0; i < count; ++i)
      parameters.push_back(
          {"p" + std::to_string(i), at::zeros({stripe_of(kRanks)}, at::kFloat).requires_grad_(true)});
    layout.emplace(parameters, kRanks);
    kept.share = communicator.rank();
    kept.shares = kRanks;
    kept.mine = {&*layout, layout->blocks(communicator.rank()), at::zeros({layout->elements() / kRanks})};
    reducer.emplace(parameters, kept, 0, pool, communicator, timer);
    reducer->configure(/*bucket_mb=*/0, /*overlap=*/true);
  }
  const at::Tensor& parameter(int i) { return parameters[static_cast<std::size_t>(i)].tensor; }
  /// Of which backward makes the gradients in reverse order.
  at::Tensor sum_of_all() {
    at::Tensor sum = at::zeros({});
    for (const Parameter& one : parameters) sum = sum.add(one.tensor.sum());
    return sum;
  }
  void pass(const at::Tensor& loss) {
    reducer->expect_backward(true);
    loss.backward();
    reducer->backward_done();
  }
  /// Of the parameter's own share: each element has the same.
  float kept_of(int i) {
    const Stretch whole = layout->of(parameters[static_cast<std::size_t>(i)].name);
    const auto mine = within(whole, kept.mine.blocks);
    const at::Tensor gradient = kept.mine.gradient(mine.front());
    EXPECT_EQ(gradient.min().item<float>(), gradient.max().item<float>());
    return gradient[0].item<float>();
  }

  Communicator& communicator;
  PhaseTimer timer;
  std::vector<Parameter> parameters;
  std::optional<GradientLayout> layout;
  KeptShares kept;
  BucketPool pool{at::kCPU};
  std::optional<BucketReducer> reducer;
};

void on_ranks(int parameters, const std::function<void(Reduced&)>& body) {
  testing::run_ranks(kRanks, [&](int, Communicator& communicator, Progress& progress) {
    Reduced reduced(communicator, progress, parameters);
    body(reduced);
  });
}

TEST(BucketReducer, KeepsTheRanksShareOfTheSumsAndNoGradientElse) {
  on_ranks(3, [](Reduced& one) {
    const auto factor = static_cast<float>(one.communicator.rank() + 1);
    for (int step = 0; step < 2; ++step) {
      one.reducer->begin_step(2);
      one.pass(one.parameter(0).sum().mul(factor).add(one.parameter(2).sum()));
      one.pass(one.parameter(0).sum().mul(factor));
      ASSERT_TRUE(one.reducer->finish());
      EXPECT_EQ(one.kept_of(0), 6);
      EXPECT_EQ(one.kept_of(1), 0) << "nobody uses it";
      EXPECT_EQ(one.kept_of(2), 2);
      for (const Parameter& parameter : one.parameters) EXPECT_FALSE(parameter.tensor.grad().defined());
    }
  });
}

TEST(BucketReducer, ARankThatHasNoPassSendsZeros) {
  on_ranks(2, [](Reduced& one) {
    one.reducer->begin_step(3);
    for (int pass = 0; one.communicator.rank() == 0 && pass < 3; ++pass) one.pass(one.parameter(1).sum());
    ASSERT_TRUE(one.reducer->finish());
    EXPECT_EQ(one.kept_of(0), 0);
    EXPECT_EQ(one.kept_of(1), 3);
  });
}

/// The next step has nothing of it.
TEST(BucketReducer, APassThatFailsLeavesTheRanksInStep) {
  on_ranks(3, [](Reduced& one) {
    one.reducer->begin_step(2);
    if (one.communicator.rank() == 0) {
      const unsigned hook = one.parameter(1).register_hook(
          [](const at::Tensor& /*gradient*/) { throw std::runtime_error("no more"); });
      EXPECT_THROW(one.pass(one.sum_of_all()), std::exception);
      one.parameter(1).remove_hook(hook);
    } else {
      for (int pass = 0; pass < 2; ++pass) one.pass(one.parameter(2).sum());
    }
    ASSERT_TRUE(one.reducer->finish());
    one.reducer->begin_step(1);
    one.pass(one.sum_of_all());
    ASSERT_TRUE(one.reducer->finish());
    for (int i = 0; i < 3; ++i) EXPECT_EQ(one.kept_of(i), kRanks) << i;
  });
}

/// As a module that is used twice does, where it is computed once more in backward.
TEST(BucketReducer, AGradientThatComesOnceMoreIsAddedOrSaysThatItIsLate) {
  on_ranks(2, [](Reduced& one) {
    one.reducer->begin_step(1);
    one.reducer->expect_backward(true);
    one.parameter(0).sum().backward();  // the second bucket, which waits for the first one
    one.parameter(0).sum().backward();
    one.parameter(1).sum().backward();
    one.reducer->backward_done();
    ASSERT_TRUE(one.reducer->finish());
    EXPECT_EQ(one.kept_of(0), 2 * kRanks);
    EXPECT_EQ(one.kept_of(1), kRanks);

    one.reducer->begin_step(1);
    one.reducer->expect_backward(true);
    one.parameter(1).sum().backward();
    try {
      one.parameter(1).sum().backward();
      ADD_FAILURE() << "it was taken";
    } catch (const std::exception& error) {
      EXPECT_THAT(error.what(), HasSubstr("the gradient of 'p1' came twice in one backward pass"));
    }
    ASSERT_TRUE(one.reducer->finish());
  });
}

/// As many buckets as are open and on their way at once, not as many as there are.
TEST(BucketReducer, NeedsMemoryForAFewBucketsOnly) {
  on_ranks(8, [](Reduced& one) {
    one.reducer->begin_step(1);
    one.pass(one.sum_of_all());
    ASSERT_TRUE(one.reducer->finish());
    for (int i = 0; i < 8; ++i) EXPECT_EQ(one.kept_of(i), kRanks);
    std::vector<at::Tensor> free;
    while (one.pool.has_free()) free.push_back(one.pool.take());
    EXPECT_LE(free.size(), 3U);
  });
}

}  // namespace
}  // namespace footplate
