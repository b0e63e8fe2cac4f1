#include <random>

#include "fixture.h"
#include "run_files/checkpoint_folders.h"
#include "runtime/checkpoint/checkpoint_reader.h"
#include "runtime/checkpoint/resume.h"

namespace footplate {
namespace {

using test::names_in;
using test::save_step;
using test::SmallState;
using test::TemporaryFolder;
using Names = std::vector<std::string>;

class RetentionTest : public testing::Test {
 protected:
  TemporaryFolder run_;
  PosixDisk disk_;
  std::filesystem::path folder_ = branch_folder(run_.path());
  CheckpointStore store_{folder_, disk_};
};

TEST_F(RetentionTest, KeepsTheNewest) {
  for (std::int64_t step = 1; step <= 5; ++step) ASSERT_TRUE(save_step(store_, step, 2));
  EXPECT_EQ(names_in(folder_), (Names{"step-00000004", "step-00000005"}));
}

TEST_F(RetentionTest, ZeroKeepsAll) {
  for (std::int64_t step = 1; step <= 5; ++step) ASSERT_TRUE(save_step(store_, step, 0));
  EXPECT_EQ(names_in(folder_).size(), 5u);
}

TEST_F(RetentionTest, TaggedAndBestStayBesides) {
  ASSERT_TRUE(save_step(store_, 1, 1, "mine"));
  Manifest best = test::manifest_at(2);
  best.best = true;
  ASSERT_TRUE(store_.save(best, "rank-0.safetensors", SmallState(2).views(), {1}));
  for (std::int64_t step = 3; step <= 5; ++step) ASSERT_TRUE(save_step(store_, step, 1));
  EXPECT_EQ(names_in(folder_), (Names{"step-00000001-mine", "step-00000002", "step-00000005"}));
  best.step = 6;
  ASSERT_TRUE(store_.save(best, "rank-0.safetensors", SmallState(6).views(), {1}));
  EXPECT_EQ(names_in(folder_), (Names{"step-00000001-mine", "step-00000005", "step-00000006"}));
}

TEST_F(RetentionTest, ThoseSavedAsBestOnesAlonePruneThemselves) {
  const auto save_best = [&](std::int64_t step, std::size_t keep_best) {
    Manifest best = test::manifest_at(step);
    best.best = best.only_best = true;
    return store_.save(best, "rank-0.safetensors", SmallState(static_cast<float>(step)).views(),
                       {2, keep_best});
  };
  ASSERT_TRUE(save_step(store_, 1, 2));
  for (std::int64_t step = 2; step <= 4; ++step) ASSERT_TRUE(save_best(step, 2));
  EXPECT_EQ(names_in(folder_), (Names{"step-00000001", "step-00000003", "step-00000004"}));
  for (std::int64_t step = 5; step <= 7; ++step) ASSERT_TRUE(save_step(store_, step, 2));
  EXPECT_EQ(names_in(folder_), (Names{"step-00000004", "step-00000006", "step-00000007"}))
      << "the best one stays, and takes nobody's place";
  // Beside training: of a step before what was saved last.
  ASSERT_TRUE(save_best(5, 1));
  EXPECT_EQ(names_in(folder_), (Names{"step-00000005", "step-00000006", "step-00000007"}));
}

TEST_F(RetentionTest, ADamagedOneTakesNobodysPlaceAndStaysForALook) {
  ASSERT_TRUE(save_step(store_, 1, 2));
  ASSERT_TRUE(save_step(store_, 2, 2));
  test::write_file(folder_ / "step-00000002" / "manifest.json", "{}");
  ASSERT_TRUE(save_step(store_, 3, 2));
  EXPECT_EQ(names_in(folder_), (Names{"step-00000001", "step-00000002", "step-00000003"}));
}

// Random lives of a run: saves, starts, damage to the newest; never without a verified checkpoint once
// there was one, never more than keep and the best of them on disk.
TEST_F(RetentionTest, RandomSequencesNeverEatTheLastGoodOne) {
  std::mt19937 random(7);
  for (std::size_t keep = 1; keep <= 3; ++keep) {
    std::filesystem::remove_all(folder_);
    std::int64_t step = 0;
    std::size_t damaged = 0;
    for (int round = 0; round < 300; ++round) {
      const auto choice = random() % 10;
      if (choice < 7 || step == 0) {
        Manifest manifest = test::manifest_at(step += 1 + random() % 3);
        manifest.best = random() % 4 == 0;
        ASSERT_TRUE(store_.save(manifest, "rank-0.safetensors", SmallState(1).views(), {keep}));
        ASSERT_EQ(newest_verified(folder_).path, folder_ / folder_name(step, ""));
      } else if (choice == 7) {
        store_.remove_leftovers();
      } else if (list_checkpoints(folder_).size() - damaged >= 2) {
        const auto newest = newest_verified(folder_).path;
        ASSERT_TRUE(newest);
        test::write_file(*newest / "manifest.json", "damaged");
        ++damaged;
        step = verify_checkpoint(*newest_verified(folder_).path)->step;  // a restart goes on from there …
        std::filesystem::remove_all(*newest);                            // … and reaches that step again
        --damaged;
      }
      ASSERT_TRUE(newest_verified(folder_).path);
      ASSERT_LE(list_checkpoints(folder_).size(), keep + 1);
    }
  }
}

}  // namespace
}  // namespace footplate
