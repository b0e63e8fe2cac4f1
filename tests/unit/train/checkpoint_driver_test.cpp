// Through the trainer's door, on simulated ranks.
#include "runtime/train/checkpoint_driver.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <mutex>
#include <string>

#include "tests/unit/train/fixtures.h"

namespace footplate {
namespace {

using testing::final_hash;
using ::testing::HasSubstr;
using testing::Rank;
using testing::small_settings;
using testing::train;

TEST(CheckpointDriver, ResumeIsBitExact) {
  const auto whole = final_hash(2, {"eval.every=4"});
  for (const std::int64_t at : {1, 3, 4, 9}) {
    std::map<int, testing::MemorySaver> kept;
    std::mutex mutex;
    train(
        2, small_settings({"eval.every=4"}),
        [&](Rank& rank) {
          rank.gate.call_at(at, {"ckpt.save", {{"tag", "x"}}});
        },
        [&](Rank& rank) {
          const std::lock_guard lock(mutex);
          kept[rank.communicator.rank()].checkpoints = rank.saver.checkpoints;
        });
    EXPECT_EQ(final_hash(2, {"eval.every=4"},
                         [&](Rank& rank) {
                           rank.saver.checkpoints = kept.at(rank.communicator.rank()).checkpoints;
                           const auto loaded = rank.trainer.load("step-" + std::to_string(at) + "x");
                           ASSERT_TRUE(loaded) << loaded.error().message;
                           ASSERT_EQ(rank.trainer.step(), at);
                         }),
              whole);
  }
}

TEST(CheckpointDriver, ASaveThatFailsOnOneRankFailsOnAllAndTrainingGoesOn) {
  const auto undisturbed = final_hash(2, {});
  EXPECT_EQ(final_hash(2, {"ckpt.every=5"},
                       [](Rank& rank) { rank.saver.disk_full = rank.communicator.rank() == 1; }),
            undisturbed);
  train(
      2, small_settings(),
      [](Rank& rank) {
        rank.saver.disk_full = rank.communicator.rank() == 1;
        rank.gate.call_at(3, {"ckpt.save", Json::object()});
      },
      [](Rank& rank) {
        ASSERT_FALSE(rank.gate.results.at(3));
        EXPECT_EQ(rank.gate.results.at(3).error().message, "rank 1: no space left");
      });
}

TEST(CheckpointDriver, AStateOfRank0ThatMostDontHaveIsNotSaved) {
  for (const int odd : {0, 1}) {
    setenv("FOOTPLATE_FAULT", ("flip_bit:rank=" + std::to_string(odd) + ":step=6").c_str(), 1);
    train(
        3, small_settings({"guard.check_every=3"}),
        [](Rank& rank) {
          rank.gate.call_at(5, {"ckpt.save", Json::object()});
          rank.gate.call_at(9, {"ckpt.save", Json::object()});
        },
        [&](Rank& rank) {
          EXPECT_TRUE(rank.gate.results.at(5)) << odd;
          ASSERT_EQ(rank.gate.results.at(9).has_value(), odd != 0);
          if (odd == 0) {
            EXPECT_THAT(rank.gate.results.at(9).error().message,
                        HasSubstr("rank 0's state differs from that of most ranks, and is not saved; "
                                  "guard.repair{ source = 1 }"));
          }
        });
    unsetenv("FOOTPLATE_FAULT");
  }
}

}  // namespace
}  // namespace footplate
