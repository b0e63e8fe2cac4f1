#include "runtime/train/batch_loader.h"

#include <ATen/ops/ones.h>
#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace footplate {
namespace {

/// Its batches are the numbers of their samples. load() waits while the gate is closed.
class Numbers final : public v1::Task {
 public:
  std::vector<v1::Parameter> parameters() override { return {{"values", values_}}; }
  std::vector<v1::DataSet> data() override {
    return {{.name = "numbers", .training = 100000, .order = v1::Order::counted}};
  }
  v1::Batch load(const v1::Samples& samples) override {
    MutexLock lock(mutex_);
    ++loaded_;
    threads_.insert(std::this_thread::get_id());
    changed_.notify_all();
    changed_.wait(lock, [this]() REQUIRES(mutex_) { return open_; });
    if (samples.indexes.front() == throws_at_) {
      throws_at_ = -1;
      throw std::runtime_error("no such number");
    }
    return {.tensors = {at::tensor(std::vector(samples.indexes.begin(), samples.indexes.end()))},
            .weight = static_cast<double>(samples.indexes.size())};
  }
  at::Tensor loss(const v1::Batch& /*batch*/, v1::Sums& /*sums*/) override { return values_.sum(); }

  void open(bool open) {
    const MutexLock lock(mutex_);
    open_ = open;
    changed_.notify_all();
  }
  void wait_for_loads(int loads) {
    MutexLock lock(mutex_);
    changed_.wait(lock, [this, loads]() REQUIRES(mutex_) { return loaded_ >= loads; });
  }
  void throw_once_at(std::int64_t index) {
    const MutexLock lock(mutex_);
    throws_at_ = index;
  }
  int loaded() {
    const MutexLock lock(mutex_);
    return loaded_;
  }
  std::set<std::thread::id> threads() {
    const MutexLock lock(mutex_);
    return threads_;
  }

 private:
  const at::Tensor values_ = at::ones({3}).requires_grad_(true);
  Mutex mutex_;
  Condition changed_;
  bool open_ GUARDED_BY(mutex_) = true;
  std::int64_t throws_at_ GUARDED_BY(mutex_) = -1;
  int loaded_ GUARDED_BY(mutex_) = 0;
  std::set<std::thread::id> threads_ GUARDED_BY(mutex_);
};

class BatchLoaderTest : public ::testing::Test {
 protected:
  BatchLoaderTest() {
    auto numbers = std::make_unique<Numbers>();
    numbers_ = numbers.get();
    task_ = std::make_unique<HostedTask>(std::move(numbers), v1::Declaration{}, /*seed=*/1, host_device());
    loader_ = std::make_unique<BatchLoader>(*task_);
  }

  static std::vector<Draws> draws(std::int64_t first, int batches) {
    std::vector<Draws> list;
    for (int i = 0; i < batches; ++i) list.push_back({0, {first + 4 * i, first + 4 * i + 4}});
    return list;
  }
  std::int64_t take(const Draws& draws) {
    return loader_->take(draws).batch.tensors.front().select(0, 0).item<std::int64_t>();
  }
  /// As a run does: each batch, with those that come after it.
  void take_all(const std::vector<Draws>& all) {
    for (std::size_t i = 0; i < all.size(); ++i) {
      loader_->expect(std::span(all).subspan(i));
      ASSERT_EQ(take(all[i]), all[i].slice.first);
    }
  }

  Numbers* numbers_;
  std::unique_ptr<HostedTask> task_;
  std::unique_ptr<BatchLoader> loader_;
};

TEST_F(BatchLoaderTest, WhatIsTakenIsTheSameOnAnyNumberOfThreads) {
  for (const int workers : {0, 1, 4, 2, 0}) {
    loader_->configure(workers, 3);
    EXPECT_EQ(loader_->room(), static_cast<std::size_t>(3 * workers));
    take_all(draws(100 * workers, 200));
  }
}

TEST_F(BatchLoaderTest, BatchesAreLoadedAheadAsFarAsThereIsRoom) {
  loader_->configure(2, 3);
  const auto all = draws(0, 20);
  loader_->expect(all);
  numbers_->wait_for_loads(6);
  EXPECT_EQ(take(all[0]), 0);
  loader_->expect(std::span(all).subspan(1));
  numbers_->wait_for_loads(7);
  loader_->forget();
  EXPECT_EQ(numbers_->loaded(), 7) << "no batch more than asked for";
  EXPECT_FALSE(numbers_->threads().contains(std::this_thread::get_id()));
}

TEST_F(BatchLoaderTest, OneThatNoThreadHasBegunIsLoadedWhereItIsTaken) {
  loader_->configure(1, 8);
  numbers_->open(false);
  const auto all = draws(0, 2);
  loader_->expect(all);
  numbers_->wait_for_loads(1);  // the thread is at the first one, and stays there
  std::thread opens([this] {
    numbers_->wait_for_loads(2);
    numbers_->open(true);
  });
  EXPECT_EQ(take({0, {500, 504}}), 500) << "of another step than the threads expect";
  opens.join();
  EXPECT_TRUE(numbers_->threads().contains(std::this_thread::get_id()));
  EXPECT_EQ(take(all[0]), 0);
}

TEST_F(BatchLoaderTest, WhatLoadThrowsIsThrownWhereTheBatchIsTaken) {
  numbers_->throw_once_at(8);
  loader_->configure(2, 2);
  const auto all = draws(0, 4);
  loader_->expect(all);
  EXPECT_EQ(take(all[0]), 0);
  EXPECT_EQ(take(all[1]), 4);
  EXPECT_THROW(take(all[2]), std::runtime_error);
  EXPECT_EQ(take(all[2]), 8) << "a step that is tried again loads again";
}

TEST_F(BatchLoaderTest, OnceForgottenNoThreadIsInLoad) {
  loader_->configure(3, 2);
  numbers_->open(false);
  loader_->expect(draws(0, 10));
  numbers_->wait_for_loads(3);
  std::atomic<bool> opened = false;
  std::thread opens([&] {
    opened = true;
    numbers_->open(true);
  });
  loader_->forget();
  EXPECT_TRUE(opened);
  opens.join();
  const int loaded = numbers_->loaded();
  take_all(draws(0, 3));
  EXPECT_GT(numbers_->loaded(), loaded) << "loaded anew";
}

TEST_F(BatchLoaderTest, WhatIsNoLongerExpectedIsDropped) {
  loader_->configure(1, 4);
  loader_->expect(draws(0, 4));
  numbers_->wait_for_loads(4);
  take_all(draws(2, 8));  // another batch size, say
}

}  // namespace
}  // namespace footplate
