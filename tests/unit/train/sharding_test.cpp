// optim.shard: the ranks share the optimizer's state, and the gradients, and train as if each had all of it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <ATen/ops/rand.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <mutex>
#include <set>

#include "runtime/comm/shares.h"
#include "runtime/optim/gradient_layout.h"
#include "tests/unit/train/fixtures.h"

namespace footplate {
namespace {

using ::testing::Each;
using testing::final_hash;
using ::testing::HasSubstr;
using testing::metrics_of;
using testing::Rank;
using testing::small_settings;
using testing::train;

std::vector<std::string> sharded(std::vector<std::string> assignments, int stage = 1) {
  assignments.emplace_back("optim.shard=" + std::to_string(stage));
  return assignments;
}

/// A model of 3.7 million parameters: gradients are in several buckets, and parameters in two of them.
std::vector<std::string> wide(std::vector<std::string> assignments) {
  assignments.insert(assignments.end(), {"model.width=384", "model.context=4", "train.steps=4"});
  return assignments;
}

/// Largest difference of two runs in a metric, as a part of its value.
double apart(const std::vector<Json>& some, const std::vector<Json>& others, const char* metric) {
  EXPECT_EQ(some.size(), others.size());
  double most = 0;
  for (std::size_t i = 0; i < std::min(some.size(), others.size()); ++i) {
    const double one = some[i].at(metric).get<double>(), other = others[i].at(metric).get<double>();
    most = std::max(most, std::abs(one - other) / std::abs(other));
  }
  return most;
}

TEST(Sharding, TrainsAsWithoutItOnAnyNumberOfRanks) {
  for (const int ranks : {1, 2, 3, 4})
    for (const std::vector<std::string>& how : {std::vector<std::string>{},
                                                {"optim.kind=lion", "sched.base_lr=0.001"},
                                                {"optim.kind=sgd"},
                                                {"train.clip_norm=0.01", "train.micro_batch=2"},
                                                {"run.task=synthetic", "comm.overlap=on"},
                                                {"train.gradient_checkpointing=true"},
                                                {"debug.collectives=detail"}}) {
      const auto whole = metrics_of(ranks, how);
      for (const int stage : {1, 2}) {
        const auto shares = metrics_of(ranks, sharded(how, stage));
        const std::string what = how.empty() ? "defaults" : how.front();
        EXPECT_LE(apart(shares, whole, "train/loss"), 1e-5) << ranks << " ranks, " << what << ", " << stage;
        EXPECT_LE(apart(shares, whole, "train/grad_norm"), 1e-3)
            << ranks << " ranks, " << what << ", " << stage;
      }
    }
}

/// Each rank has one backward pass in a step: the same is summed.
TEST(Sharding, SharedGradientsAreThoseOfTheBuffer) {
  for (const int ranks : {2, 3})
    for (const char* overlap : {"comm.overlap=off", "comm.overlap=on"}) {
      const auto shares = final_hash(ranks, sharded(wide({}), 1));
      EXPECT_EQ(final_hash(ranks, sharded(wide({overlap}), 2)), shares) << ranks << " ranks, " << overlap;
    }
}

TEST(Sharding, SharedGradientsAddUpOverThePassesOfAStep) {
  for (const char* overlap : {"comm.overlap=off", "comm.overlap=on"}) {
    const std::vector<std::string> how = wide({"train.micro_batch=1", overlap});
    const auto whole = metrics_of(2, how), shares = metrics_of(2, sharded(how, 2));
    EXPECT_LE(apart(shares, whole, "train/loss"), 1e-5);
    EXPECT_LE(apart(shares, whole, "train/grad_norm"), 1e-3);
  }
}

/// 4, 3 and 3 samples of a rank, and 1, 1 and none.
TEST(Sharding, ARankWithFewerPassesTakesPartInThoseOfOthers) {
  for (const char* batch : {"train.batch_size=10", "train.batch_size=2"}) {
    const std::vector<std::string> how{batch, "train.micro_batch=1"};
    const auto whole = metrics_of(3, how), shares = metrics_of(3, sharded(how, 2));
    EXPECT_LE(apart(shares, whole, "train/loss"), 1e-5) << batch;
  }
}

TEST(Sharding, BucketsOfSharedGradientsHaveAnotherSizeFromAStepOn) {
  const auto settings = sharded(wide({"comm.bucket_mb=4"}), 2);
  const auto change = [](Rank& rank) { rank.gate.change_at(2, "comm.bucket_mb", 4096.0); };
  EXPECT_EQ(final_hash(2, settings, change), final_hash(2, settings));
}

/// The others are in the middle of their passes, or at the first one's last bucket.
TEST(Sharding, APassThatFailsOnOneRankEndsTheStepOnAll) {
  ::setenv("FOOTPLATE_FAULT", "step_throw:rank=1:step=2", 1);
  for (const char* micro_batch : {"train.micro_batch=1", "train.micro_batch=0"}) {
    const auto messages = testing::train_to_failure(3, small_settings(sharded(wide({micro_batch}), 2)));
    EXPECT_THAT(messages, Each(::testing::AllOf(HasSubstr("step 2 failed"), HasSubstr("rank 1: injected"))))
        << micro_batch;
  }
  ::unsetenv("FOOTPLATE_FAULT");
}

TEST(Sharding, OverlapChangesNothing) {
  const auto off = final_hash(3, sharded({"comm.overlap=off"}));
  EXPECT_EQ(final_hash(3, sharded({"comm.overlap=on"})), off);
  EXPECT_EQ(final_hash(3, sharded({"comm.overlap=on", "comm.bucket_mb=64"})), off);
}

/// Elements of the optimizer's state by tensor, with those that each rank has.
struct Elements {
  std::map<std::string, std::int64_t> whole, there;
  std::vector<std::size_t> bytes;
};

Elements elements_of(int ranks, const std::vector<std::string>& assignments) {
  Elements all;
  std::mutex mutex;
  train(ranks, small_settings(assignments), {}, [&](Rank& rank) {
    const std::scoped_lock lock(mutex);
    std::size_t bytes = 0;
    for (const StateEntry& entry : rank.trainer.state().entries()) {
      if (!entry.name.starts_with("optim/exp")) continue;
      const auto count = static_cast<std::int64_t>(entry.bytes / sizeof(float));
      bytes += entry.bytes;
      all.there[entry.name] += count;
      std::int64_t whole = count;
      if (entry.shard) {
        whole = 1;
        for (const std::int64_t extent : entry.shard->shape) whole *= extent;
      }
      all.whole[entry.name] = whole;
    }
    all.bytes.push_back(bytes);
  });
  return all;
}

TEST(Sharding, EachRankHasItsShareOfTheOptimizersStateAndNoMore) {
  const Elements plain = elements_of(1, {});
  for (const int ranks : {2, 3, 4}) {
    const Elements shares = elements_of(ranks, sharded({}));
    EXPECT_EQ(shares.there, shares.whole) << "every element is somebody's, once";
    EXPECT_EQ(shares.whole, plain.whole);
    const auto all = static_cast<double>(plain.bytes.front());
    EXPECT_THAT(shares.bytes, Each(::testing::Le(1.05 * all / ranks))) << ranks;
  }
}

/// Also where a rank has nothing of a tensor: a checkpoint is read by what all of them name.
TEST(Sharding, AllRanksNameTheSameTensors) {
  for (const char* kind : {"optim.kind=adamw", "optim.kind=sgd", "optim.kind=lion"}) {
    std::set<std::set<std::string>> named;
    std::mutex mutex;
    train(4, small_settings(sharded({kind})), {}, [&](Rank& rank) {
      std::set<std::string> names;
      for (const StateEntry& entry : rank.trainer.state().entries()) names.insert(entry.name);
      const std::scoped_lock lock(mutex);
      named.insert(names);
    });
    ASSERT_EQ(named.size(), 1U) << kind;
    train(1, small_settings({kind}), {}, [&](Rank& rank) {
      for (const StateEntry& entry : rank.trainer.state().entries())
        EXPECT_TRUE(named.begin()->contains(entry.name)) << entry.name;
    });
  }
}

TEST(Sharding, AStepThatIsntFiniteIsSkippedByAll) {
  ::setenv("FOOTPLATE_FAULT", "nan_grad:step=4:rank=1", 1);
  const auto whole = metrics_of(3, {});
  for (const int stage : {1, 2}) {
    const auto shares = metrics_of(3, sharded({}, stage));
    EXPECT_LE(apart(shares, whole, "train/loss"), 1e-5) << stage;
    EXPECT_EQ(shares.back().at("guard/nonfinite"), 1) << stage;
  }
  ::unsetenv("FOOTPLATE_FAULT");
}

TEST(Sharding, MuonSaysThatItNeedsWholeMatrices) {
  testing::run_ranks(2, [](int, Communicator& communicator, Progress& progress) {
    const auto made = Trainer::create(
        {small_settings(sharded({"optim.kind=muon"})), communicator, progress, 2, nullptr, nullptr, {}});
    ASSERT_FALSE(made);
    EXPECT_EQ(made.error().kind, ErrorKind::usage);
    EXPECT_THAT(made.error().message, HasSubstr("optim.shard = 1 (from test): muon needs whole matrices"));
  });
}

TEST(Sharding, BucketsAreWholeStripesWithAllParametersThatReachIntoThem) {
  constexpr int kRanks = 2;
  const std::int64_t stripe = stripe_of(kRanks);
  std::vector<Parameter> parameters;
  for (const std::int64_t elements : {std::int64_t{10}, 2 * stripe, stripe / 2, std::int64_t{7}})
    parameters.push_back({"p" + std::to_string(parameters.size()), at::rand({elements})});
  const GradientLayout layout(parameters, kRanks);
  EXPECT_EQ(layout.elements() % (kRanks * kBlockAlign), 0);
  const auto buckets = layout.buckets_of_stripes(1);
  ASSERT_EQ(buckets.size(), 3U);
  // In reversed order: 7, half a stripe, two stripes, 10.
  const std::vector<std::pair<std::size_t, std::size_t>> inside{{0, 3}, {2, 3}, {2, 4}};
  std::int64_t at = 0;
  for (std::size_t i = 0; i < buckets.size(); ++i) {
    EXPECT_EQ(buckets[i].elements.first, at);
    EXPECT_EQ(std::pair(buckets[i].first, buckets[i].last), inside[i]) << i;
    at = buckets[i].elements.end;
  }
  EXPECT_EQ(at, layout.elements());
  EXPECT_EQ(layout.buckets_of_stripes(2 * stripe).size(), 2U);
}

}  // namespace
}  // namespace footplate
