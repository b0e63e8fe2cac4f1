// Checkpoints of several files.
#include <array>

#include "faulty_disk.h"
#include "fixture.h"
#include "run_files/checkpoint_folders.h"
#include "runtime/checkpoint/checkpoint_reader.h"
#include "runtime/checkpoint/resume.h"
#include "runtime/checkpoint/sha256.h"

namespace footplate {
namespace {

using test::Contents;
using test::LargeState;
using test::manifest_at;
using test::save_parts;
using test::save_step;

class PartsTest : public testing::Test {
 protected:
  std::filesystem::path save(std::int64_t step, std::size_t parts) {
    const std::vector<CheckpointStore*> stores(parts, &store_);
    const auto stored = save_parts(stores, manifest_at(step), state_.views());
    EXPECT_TRUE(stored) << stored.error().message;
    return stored->path;
  }
  std::string message_of(const std::filesystem::path& checkpoint) {
    const auto loaded = test::load(checkpoint);
    const auto verified = verify_checkpoint(checkpoint);
    EXPECT_EQ(loaded.has_value(), verified.has_value());
    return loaded ? "accepted" : loaded.error().message;
  }
  /// Makes the manifest list the files as they are.
  static void list_again(const std::filesystem::path& checkpoint) {
    auto manifest = read_manifest(checkpoint);
    ASSERT_TRUE(manifest) << manifest.error().message;
    for (ManifestFile& file : manifest->files) {
      const std::string content = test::read_file(checkpoint / file.name);
      file.bytes = content.size();
      file.sha256 = sha256_hex(std::as_bytes(std::span(content)));
    }
    test::write_file(checkpoint / "manifest.json", to_text(*manifest));
  }

  test::TemporaryFolder run_;
  PosixDisk disk_;
  std::filesystem::path folder_ = branch_folder(run_.path());
  CheckpointStore store_{folder_, disk_};
  LargeState state_;
};

TEST_F(PartsTest, AnyNumberOfPartsIsTheSameState) {
  const Contents whole = test::contents_of(state_.views());
  for (std::size_t parts = 1; parts <= 9; ++parts) {
    const auto checkpoint = save(static_cast<std::int64_t>(parts), parts);
    EXPECT_EQ(test::names_in(checkpoint).size(), parts + 1);
    const auto loaded = test::load(checkpoint);
    ASSERT_TRUE(loaded) << loaded.error().message;
    EXPECT_TRUE(*loaded == whole) << parts;
    EXPECT_TRUE(CheckpointReader::open(checkpoint)
                    ->matches(std::vector<TensorSpec>{{"model/b", TensorType::float32, {3}},
                                                      {"model/w", TensorType::float32, {3, 200, 1024}},
                                                      {"optim/step", TensorType::int64, {}}}));
  }
}

TEST_F(PartsTest, OneThatIsMissingIsNamed) {
  const auto checkpoint = save(5, 3);
  std::filesystem::remove(checkpoint / file_of_rank(1));
  EXPECT_NE(message_of(checkpoint).find("its file rank-1.safetensors is missing"), std::string::npos);
}

TEST_F(PartsTest, ThoseOfAnotherCheckpointAreRefused) {
  const auto checkpoint = save(5, 3);
  state_.weights[0] = 7;
  state_.weights.back() = 7;
  const auto other = save(6, 3);
  const auto copy = std::filesystem::copy_options::overwrite_existing;
  std::filesystem::copy_file(other / file_of_rank(2), checkpoint / file_of_rank(2), copy);
  EXPECT_NE(message_of(checkpoint).find("rank-2.safetensors is refused: its content is damaged"),
            std::string::npos);
}

TEST_F(PartsTest, AListedPartThatIsThereTwiceIsRefused) {
  const auto checkpoint = save(5, 3);
  const auto copy = std::filesystem::copy_options::overwrite_existing;
  std::filesystem::copy_file(checkpoint / file_of_rank(1), checkpoint / file_of_rank(2), copy);
  list_again(checkpoint);
  EXPECT_NE(message_of(checkpoint).find("two of its files hold the same part of tensor 'model/w'"),
            std::string::npos)
      << message_of(checkpoint);
}

TEST_F(PartsTest, AManifestThatLeavesOneOutIsRefused) {
  const auto checkpoint = save(5, 3);
  auto manifest = read_manifest(checkpoint);
  ASSERT_TRUE(manifest);
  manifest->files.erase(manifest->files.begin() + 1);
  std::filesystem::remove(checkpoint / file_of_rank(1));
  test::write_file(checkpoint / "manifest.json", to_text(*manifest));
  EXPECT_NE(message_of(checkpoint).find("its files don't hold all of tensor 'model/w'"), std::string::npos)
      << message_of(checkpoint);
}

TEST_F(PartsTest, OneOfAnotherShapeIsRefused) {
  const auto checkpoint = save(5, 3);
  std::string part = test::read_file(checkpoint / file_of_rank(1));
  const auto at = part.find("[3,200,1024]");
  ASSERT_NE(at, std::string::npos);
  part.replace(at, 12, "[600,  1024]");
  test::write_file(checkpoint / file_of_rank(1), part);
  list_again(checkpoint);
  EXPECT_NE(message_of(checkpoint).find("its part of tensor 'model/w' is of another type or shape"),
            std::string::npos)
      << message_of(checkpoint);
}

TEST_F(PartsTest, ThoseThatAreThereAlreadyGetASecondName) {
  const auto checkpoint = save(5, 2);
  const auto temporary = store_.begin(5, "again");
  ASSERT_TRUE(temporary);
  Manifest manifest = manifest_at(5, "again");
  for (const int part : {0, 1}) {
    const auto file = store_.write_part(*temporary, 5, file_of_rank(part),
                                        test::part_of(state_.views(), part, 2), checkpoint);
    ASSERT_TRUE(file) << file.error().message;
    manifest.files.push_back(*file);
  }
  ASSERT_TRUE(store_.commit(*temporary, manifest, {}));
  for (const int part : {0, 1})
    EXPECT_EQ(std::filesystem::hard_link_count(checkpoint / file_of_rank(part)), 2U) << part;
}

TEST_F(PartsTest, WhatIsGivenUpLeavesNothing) {
  const auto temporary = store_.begin(5, "");
  ASSERT_TRUE(temporary);
  ASSERT_TRUE(store_.write_part(*temporary, 5, file_of_rank(0), test::part_of(state_.views(), 0, 2)));
  EXPECT_EQ(newest_verified(folder_).path, std::nullopt);
  store_.abandon(*temporary);
  EXPECT_TRUE(test::names_in(folder_).empty());
}

/// Which of two ranks' disks stops or fails.
class PartsCrash : public testing::TestWithParam<std::tuple<int, test::Loss>> {};

TEST_P(PartsCrash, AtEveryOperationOfEitherRankLeavesTheOlderOneOrTheNewOne) {
  const auto [crashing, loss] = GetParam();
  const LargeState state;
  int stopped = 0;
  for (int operation = 1;; ++operation) {
    ASSERT_LT(operation, 100);
    test::TemporaryFolder run;
    std::filesystem::create_directory(run.path() / "trash");
    const auto folder = branch_folder(run.path());
    PosixDisk plain;
    CheckpointStore before(folder, plain);
    ASSERT_TRUE(save_step(before, 5));
    test::FaultyDisk disks[] = {test::FaultyDisk(run.path() / "trash"),
                                test::FaultyDisk(run.path() / "trash")};
    CheckpointStore rank_0(folder, disks[0]), rank_1(folder, disks[1]);
    disks[crashing].crash_at(operation);
    bool finished = false;
    try {
      ASSERT_TRUE(save_parts(std::array{&rank_0, &rank_1}, manifest_at(6), state.views(), {1}));
      finished = true;
    } catch (const test::Crash&) {
      ++stopped;
    }
    if (!finished) disks[crashing].lose(loss);  // else rank 0 has synced the folder for both
    const auto newest = newest_verified(folder).path;
    ASSERT_TRUE(newest);
    const std::int64_t step = read_manifest(*newest)->step;
    if (finished) {
      EXPECT_EQ(step, 6);
      break;
    }
    EXPECT_TRUE(step == 6 || step == 5) << operation << ": " << disks[crashing].last();
    if (crashing == 1) {
      EXPECT_EQ(step, 5) << disks[1].last();
    }
    CheckpointStore again(folder, plain);
    again.remove_leftovers();
    EXPECT_EQ(newest_verified(folder).path, newest);
    ASSERT_TRUE(save_step(again, 7, 1));
    EXPECT_EQ(test::names_in(folder), std::vector<std::string>{"step-00000007"}) << disks[crashing].last();
  }
  EXPECT_GE(stopped, crashing == 0 ? 14 : 4);
}

INSTANTIATE_TEST_SUITE_P(All, PartsCrash,
                         testing::Combine(testing::Values(0, 1),
                                          testing::Values(test::Loss::nothing, test::Loss::everything,
                                                          test::Loss::content, test::Loss::names)));

}  // namespace
}  // namespace footplate
