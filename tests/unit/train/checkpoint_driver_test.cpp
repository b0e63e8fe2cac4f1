// Through the trainer's door, on simulated ranks.
#include "runtime/train/checkpoint_driver.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <limits>
#include <map>
#include <mutex>
#include <string>
#include <vector>

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

/// Of parameters in bfloat16, and their masters.
TEST(CheckpointDriver, ResumeIsBitExactInBf16) {
  const std::vector<std::string> in_bf16{"train.precision=bf16", "train.param_dtype=bf16"};
  std::map<std::string, testing::MemorySaver::Copy> copies;
  train(
      1, small_settings(in_bf16),
      [](Rank& rank) {
        rank.gate.call_at(4, {"ckpt.save", Json::object()});
      },
      [&](Rank& rank) { copies = rank.saver.checkpoints; });
  EXPECT_EQ(final_hash(1, in_bf16,
                       [&](Rank& rank) {
                         rank.saver.checkpoints = copies;
                         const auto loaded = rank.trainer.load("step-4");
                         ASSERT_TRUE(loaded) << loaded.error().message;
                       }),
            final_hash(1, in_bf16));
}

/// As where a disk is away for a moment.
TEST(CheckpointDriver, TheLastSaveIsTriedAgain) {
  for (const int failures : {1, 3, 4}) {
    std::vector<std::string> warnings;
    train(
        2, small_settings({"ckpt.every=100", "ckpt.retry_s=0.06"}),
        [&](Rank& rank) { rank.saver.fails = failures; },
        [&](Rank& rank) {
          EXPECT_EQ(rank.saver.checkpoints.contains("step-10"), failures < 4) << failures;
          if (rank.communicator.rank() != 0) return;
          for (const Json& one : rank.gate.events["warn"]) warnings.push_back(one.at("text"));
        });
    EXPECT_EQ(warnings.size(), static_cast<std::size_t>(failures));
  }
}

/// What rank 0 has saved, and the steps of the evaluations that were the new best.
struct Saves {
  std::map<std::string, testing::MemorySaver::Copy> copies;
  std::vector<std::string> best;
};

Saves saves_of(std::vector<std::string> assignments) {
  Saves saves;
  assignments.emplace_back("sched.base_lr=0.05");  // too large: not every evaluation is the best one
  train(2, small_settings(assignments), {}, [&](Rank& rank) {
    if (rank.communicator.rank() != 0) return;
    saves.copies = rank.saver.checkpoints;
    double best = std::numeric_limits<double>::infinity();
    for (const Json& line : rank.sink.lines) {
      if (!line.contains("eval/loss") || line.at("eval/loss").get<double>() >= best) continue;
      best = line.at("eval/loss").get<double>();
      saves.best.push_back("step-" + line.at("step").dump());
    }
  });
  return saves;
}

TEST(CheckpointDriver, ANewBestEvaluationSavesTheStateThatItWasOf) {
  const Saves all = saves_of({"ckpt.every=1"});
  for (const char* async : {"eval.async=false", "eval.async=true"}) {
    const Saves best = saves_of({"eval.every=1", "eval.batches=2", "ckpt.keep_best=1", async});
    std::vector<std::string> saved;
    for (const auto& [path, copy] : best.copies) {
      saved.push_back(path);
      EXPECT_EQ(copy.tensors, all.copies.at(path).tensors) << path << ", " << async;
      EXPECT_TRUE(copy.only_best);
      EXPECT_EQ("step-" + copy.progress.at("step").dump(), path);
      EXPECT_EQ(copy.progress.at("best_eval_at"), copy.progress.at("step"));
      EXPECT_EQ(copy.progress.at("evaluated_at"), copy.progress.at("step"));
      EXPECT_EQ(copy.progress.at("samples_drawn"), all.copies.at(path).progress.at("samples_drawn"));
    }
    EXPECT_FALSE(saved.empty());
    EXPECT_THAT(saved, ::testing::UnorderedElementsAreArray(best.best)) << async;
  }
}

TEST(CheckpointDriver, OneOfAnEvaluationBesideTrainingIsGoneOnFromBitForBit) {
  const auto whole = final_hash(2, {});
  std::map<int, testing::MemorySaver> kept;
  std::mutex mutex;
  train(2, small_settings({"eval.every=3", "eval.async=true", "ckpt.keep_best=1"}), {}, [&](Rank& rank) {
    const std::lock_guard lock(mutex);
    kept[rank.communicator.rank()].checkpoints = rank.saver.checkpoints;
  });
  ASSERT_FALSE(kept.at(0).checkpoints.empty());
  const std::string path = kept.at(0).checkpoints.begin()->first;
  EXPECT_EQ(final_hash(2, {},
                       [&](Rank& rank) {
                         rank.saver.checkpoints = kept.at(0).checkpoints;  // rank 0 alone has the tensors
                         const auto loaded = rank.trainer.load(path);
                         ASSERT_TRUE(loaded) << loaded.error().message;
                       }),
            whole);
}

TEST(CheckpointDriver, ASaveThatFailsOnOneRankFailsOnAllAndTrainingGoesOn) {
  const auto undisturbed = final_hash(2, {});
  EXPECT_EQ(final_hash(2, {"ckpt.every=5", "ckpt.retry_s=0"},
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

/// Rank 0 writes for `steps` steps, and calls are deferred.
void write_beside(Rank& rank, int steps) {
  rank.gate.defers = true;
  if (rank.communicator.rank() == 0) rank.saver.asked_while_writing = steps;
}

std::vector<std::string> saved_steps(const Rank& rank) {
  std::vector<std::string> steps;
  if (const auto saved = rank.gate.events.find("ckpt"); saved != rank.gate.events.end())
    for (const Json& event : saved->second) steps.push_back(event.at("step").dump());
  return steps;
}

TEST(CheckpointDriver, WhatIsDueMeanwhileIsSavedOnceTheOneBeforeIsWritten) {
  const Saves all = saves_of({"ckpt.every=1"});
  train(
      2, small_settings({"ckpt.every=1", "sched.base_lr=0.05"}), [](Rank& rank) { write_beside(rank, 3); },
      [&](Rank& rank) {
        if (rank.communicator.rank() != 0) return;
        EXPECT_THAT(saved_steps(rank), ::testing::ElementsAre("1", "5", "9", "10"));
        EXPECT_EQ(std::count(rank.told.begin(), rank.told.end(),
                             "step 2: the checkpoint waits until the one before is written"),
                  1);
        for (const auto& [path, copy] : rank.saver.checkpoints)
          EXPECT_EQ(copy.tensors, all.copies.at(path).tensors) << path;
        EXPECT_EQ(rank.trainer.last_checkpoint(), "step-10");
      });
  EXPECT_EQ(final_hash(2, {"ckpt.every=1"}, [](Rank& rank) { write_beside(rank, 3); }), final_hash(2, {}));
}

TEST(CheckpointDriver, ACallIsAnsweredOnceItsCheckpointIsWritten) {
  train(
      2, small_settings(),
      [](Rank& rank) {
        write_beside(rank, 4);
        rank.gate.call_at(3, {"ckpt.save", {{"tag", "x"}}});
      },
      [](Rank& rank) {
        if (rank.communicator.rank() != 0) return;
        ASSERT_EQ(rank.gate.concluded.size(), 1U);
        EXPECT_EQ(std::get<SaveResult>(*rank.gate.concluded.front()).path, "step-3x");
        EXPECT_EQ(rank.trainer.last_checkpoint(), "step-3x");
      });
}

TEST(CheckpointDriver, WhatIsUnderWayIsWaitedForByTheNextOneAndByTheEnd) {
  train(
      2, small_settings(),
      [](Rank& rank) {
        write_beside(rank, 1000);
        rank.gate.call_at(3, {"ckpt.save", {{"tag", "x"}}});
        rank.gate.call_at(4, {"ckpt.save", {{"tag", "y"}}});
      },
      [](Rank& rank) {
        if (rank.communicator.rank() != 0) return;
        ASSERT_EQ(rank.gate.concluded.size(), 2U);
        EXPECT_EQ(std::get<SaveResult>(*rank.gate.concluded.front()).path, "step-3x");
        EXPECT_EQ(std::get<SaveResult>(*rank.gate.concluded.back()).path, "step-4y");
      });
}

TEST(CheckpointDriver, APeriodicSaveThatFailedIsMadeAgainBeforeTheNextIsDue) {
  const auto saved = [](const char* retry, int asked_while_writing) {
    std::vector<std::string> steps;
    train(
        2, small_settings({"ckpt.every=5", "train.steps=12", retry}),
        [&](Rank& rank) {
          write_beside(rank, asked_while_writing);
          rank.saver.fails = rank.communicator.rank() == 0 ? 1 : 0;
        },
        [&](Rank& rank) {
          if (rank.communicator.rank() == 0) steps = saved_steps(rank);
        });
    return steps;
  };
  using ::testing::ElementsAre;
  EXPECT_THAT(saved("ckpt.retry_s=1e-6", 0), ElementsAre("7", "10", "12"));
  EXPECT_THAT(saved("ckpt.retry_s=1e-6", 1), ElementsAre("9", "11", "12")) << "each is over a step later";
  EXPECT_THAT(saved("ckpt.retry_s=0", 0), ElementsAre("10", "12"));
  EXPECT_THAT(saved("ckpt.retry_s=1000", 0), ElementsAre("10", "12"));
}

TEST(CheckpointDriver, ASaveByOrderThatFailedIsNotMadeAgain) {
  train(
      1, small_settings({"ckpt.every=1000", "ckpt.retry_s=1e-6"}),
      [](Rank& rank) {
        rank.saver.fails = 1;
        rank.gate.call_at(3, {"ckpt.save", {{"tag", "x"}}});
      },
      [](Rank& rank) {
        EXPECT_FALSE(rank.gate.results.at(3));
        EXPECT_THAT(saved_steps(rank), ::testing::ElementsAre("10"));
      });
}

TEST(CheckpointDriver, FailuresAreCountedUntilOneIsWritten) {
  train(
      1, small_settings({"ckpt.every=2", "ckpt.retry_s=0"}),
      [](Rank& rank) {
        write_beside(rank, 1);
        rank.saver.disk_full = true;
      },
      [](Rank& rank) {
        const auto& warnings = rank.gate.events.at("warn");
        ASSERT_EQ(warnings.size(), 6U) << "the last one at the end";
        EXPECT_EQ(warnings.at(0).at("text"), "step 2: no checkpoint: no space left");
        EXPECT_EQ(warnings.at(3).at("text"),
                  "step 8: no checkpoint: no space left (4 saves in a row have failed)");
        EXPECT_EQ(rank.trainer.last_checkpoint(), "");
      });
}

TEST(CheckpointDriver, WithoutAsyncTrainingWaits) {
  train(
      2, small_settings({"ckpt.async=false"}),
      [](Rank& rank) {
        write_beside(rank, 1000);
        rank.gate.call_at(3, {"ckpt.save", {{"tag", "x"}}});
      },
      [](Rank& rank) {
        EXPECT_EQ(std::get<SaveResult>(*rank.gate.results.at(3)).path, "step-3x");
        EXPECT_TRUE(rank.gate.concluded.empty());
      });
}

TEST(CheckpointDriver, TwoRanksWhoseStatesDifferDontWritePartsOfBoth) {
  setenv("FOOTPLATE_FAULT", "flip_bit:rank=1:step=6", 1);
  train(
      2, small_settings({"guard.check_every=3", "train.steps=18", "ckpt.every=10"}),
      [](Rank& rank) {
        rank.saver.writers = 2;
        for (const std::int64_t step : {5, 12, 16}) rank.gate.call_at(step, {"ckpt.save", Json::object()});
        rank.gate.call_at(14, {"guard.repair", {{"source", 0}}});
      },
      [](Rank& rank) {
        EXPECT_EQ(rank.saver.checkpoints.at("step-5").parts, 2);
        EXPECT_EQ(rank.saver.checkpoints.at("step-10").parts, 1) << "whose sums have shown it";
        EXPECT_EQ(rank.saver.checkpoints.at("step-12").parts, 1);
        EXPECT_EQ(rank.saver.checkpoints.at("step-16").parts, 2);
      });
  unsetenv("FOOTPLATE_FAULT");
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
