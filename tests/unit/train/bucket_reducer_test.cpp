// Gradients of which each rank keeps its share, at the reducer's own door.
#include "runtime/train/bucket_reducer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <ATen/ops/ones_like.h>
#include <ATen/ops/zeros.h>
#include <torch/csrc/autograd/autograd.h>

#include <functional>
#include <optional>
#include <set>
#include <stdexcept>

#include "runtime/comm/shares.h"
#include "runtime/train/buffer_reducer.h"
#include "tests/unit/train/fixtures.h"

namespace footplate {
namespace {

using ::testing::HasSubstr;

constexpr int kRanks = 2;

/// Knows the memory that travels.
class WatchedCommunicator final : public Communicator {
 public:
  explicit WatchedCommunicator(Communicator& inner) : inner_(inner) {}
  std::set<void*> memory;

  int rank() const override { return inner_.rank(); }
  int world_size() const override { return inner_.world_size(); }
  void set_chunk_elements(std::int64_t elements) override { inner_.set_chunk_elements(elements); }
  std::unique_ptr<Work> all_reduce(Buffer buffer, ReduceOp op, const char* name) override {
    return inner_.all_reduce(buffer, op, name);
  }
  std::unique_ptr<Work> broadcast(Buffer buffer, int root, const char* name) override {
    return inner_.broadcast(buffer, root, name);
  }
  std::unique_ptr<Work> all_gather(Buffer send, Buffer receive, const char* name) override {
    return inner_.all_gather(send, receive, name);
  }
  std::unique_ptr<Work> barrier(const char* name) override { return inner_.barrier(name); }
  std::unique_ptr<Work> reduce_scatter(Buffer buffer, ReduceOp op, const char* name) override {
    memory.insert(buffer.data);
    return inner_.reduce_scatter(buffer, op, name);
  }
  std::unique_ptr<Work> all_gather_shares(Buffer buffer, const char* name) override {
    return inner_.all_gather_shares(buffer, name);
  }
  std::unique_ptr<Work> pass_shares(Buffer buffer, int distance, const char* name) override {
    return inner_.pass_shares(buffer, distance, name);
  }

 private:
  Communicator& inner_;
};

/// The parameters of a rank, and what it keeps of their gradients. A bucket is a stripe.
struct Reduced {
  Reduced(Communicator& the_communicator, Progress& progress, const std::vector<int>& stripes)
      : communicator(the_communicator), timer(progress) {
    for (const int count : stripes)
      parameters.push_back({"p" + std::to_string(parameters.size()),
                            at::zeros({count * stripe_of(kRanks)}, at::kFloat).requires_grad_(true)});
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
    std::set<float> all;
    for (const Stretch& block : within(whole, kept.mine.blocks)) {
      const at::Tensor gradient = kept.mine.gradient(block);
      all.insert({gradient.min().item<float>(), gradient.max().item<float>()});
    }
    EXPECT_THAT(all, ::testing::SizeIs(1));
    return *all.begin();
  }

  WatchedCommunicator communicator;
  PhaseTimer timer;
  std::vector<Parameter> parameters;
  std::optional<GradientLayout> layout;
  KeptShares kept;
  BucketPool pool{at::kCPU};
  std::optional<BucketReducer> reducer;
};

/// `stripes`: elements of each parameter.
void on_ranks(const std::vector<int>& stripes, const std::function<void(Reduced&)>& body) {
  testing::run_ranks(kRanks, [&](int, Communicator& communicator, Progress& progress) {
    Reduced reduced(communicator, progress, stripes);
    body(reduced);
  });
}

TEST(BucketReducer, KeepsTheRanksShareOfTheSumsAndNoGradientElse) {
  on_ranks({1, 1, 1}, [](Reduced& one) {
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
  on_ranks({1, 1}, [](Reduced& one) {
    one.reducer->begin_step(3);
    for (int pass = 0; one.communicator.rank() == 0 && pass < 3; ++pass) one.pass(one.parameter(1).sum());
    ASSERT_TRUE(one.reducer->finish());
    EXPECT_EQ(one.kept_of(0), 0);
    EXPECT_EQ(one.kept_of(1), 3);
  });
}

/// The next step has nothing of it.
TEST(BucketReducer, APassThatFailsLeavesTheRanksInStep) {
  on_ranks({1, 1, 1}, [](Reduced& one) {
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
  on_ranks({1, 1}, [](Reduced& one) {
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
  for (const std::vector<int>& stripes :
       {std::vector<int>{1, 1, 1, 1, 1, 1, 1, 1}, std::vector<int>{8}, std::vector<int>{3, 5}})
    on_ranks(stripes, [&](Reduced& one) {
      one.reducer->begin_step(1);
      one.pass(one.sum_of_all());
      ASSERT_TRUE(one.reducer->finish());
      EXPECT_LE(one.communicator.memory.size(), 3U);
      for (std::size_t i = 0; i < stripes.size(); ++i) EXPECT_EQ(one.kept_of(static_cast<int>(i)), kRanks);
    });
}

/// The last parameter, whose bucket is the first, isn't used: all others wait for it.
TEST(BucketReducer, MemoryThatWasNeededOnceIsGivenBack) {
  on_ranks({1, 1, 1, 1, 1, 1, 1, 1}, [](Reduced& one) {
    one.reducer->begin_step(1);
    at::Tensor sum = at::zeros({});
    for (int i = 0; i < 7; ++i) sum = sum.add(one.parameter(i).sum());
    one.pass(sum);
    ASSERT_TRUE(one.reducer->finish());
    std::vector<at::Tensor> free;
    while (one.pool.has_free()) free.push_back(one.pool.take());
    EXPECT_THAT(free, ::testing::SizeIs(4));
    EXPECT_EQ(one.kept_of(0), kRanks);
    EXPECT_EQ(one.kept_of(7), 0);
  });
}

/// As of an embedding with sparse gradients.
TEST(BucketReducer, TakesSparseGradients) {
  on_ranks({1, 1}, [](Reduced& one) {
    one.reducer->begin_step(1);
    one.reducer->expect_backward(true);
    const at::Tensor& parameter = one.parameter(1);
    const at::Tensor gradient = at::ones_like(parameter).to_sparse();
    torch::autograd::backward({parameter}, {gradient});
    one.reducer->backward_done();
    ASSERT_TRUE(one.reducer->finish());
    EXPECT_EQ(one.kept_of(1), kRanks);
  });
}

TEST(BufferReducer, AGradientThatComesOnceMoreSaysThatItIsLate) {
  testing::run_ranks(kRanks, [](int, Communicator& communicator, Progress& /*progress*/) {
    const std::vector<Parameter> parameters{{"early", at::zeros({8}).requires_grad_(true)},
                                            {"late", at::zeros({8}).requires_grad_(true)}};
    GradientBuffer buffer(parameters, host_device());
    BufferReducer reducer(parameters, buffer, communicator, Reduction::all);
    reducer.configure(/*bucket_mb=*/1e-6, /*overlap=*/true);
    reducer.expect_backward(true);
    parameters[1].tensor.sum().backward();
    try {
      parameters[1].tensor.sum().backward();
      ADD_FAILURE() << "it was taken";
    } catch (const std::exception& error) {
      EXPECT_THAT(error.what(), HasSubstr("'late' came twice in one backward pass"));
      EXPECT_THAT(error.what(), HasSubstr("set comm.overlap = \"off\""));
    }
    ASSERT_TRUE(reducer.finish());
  });
}

}  // namespace
}  // namespace footplate
