// A save is stopped before, or within, each of its operations in turn, and the device keeps all, some or
// nothing of what was never synced. Each time the newest valid checkpoint has to be the expected one.
#include "faulty_disk.h"
#include "fixture.h"
#include "run_files/checkpoint_folders.h"
#include "runtime/checkpoint/checkpoint_reader.h"
#include "runtime/checkpoint/resume.h"

namespace footplate {
namespace {

using test::Crash;
using test::FaultyDisk;
using test::Loss;
using test::save_step;
using test::TemporaryFolder;

/// What is there before the save that crashes.
enum class Before { nothing, older, older_two, same_step, same_step_damaged };

struct Scene {
  explicit Scene(Before before) {
    std::filesystem::create_directory(trash);
    PosixDisk plain;
    CheckpointStore store(folder, plain);
    if (before == Before::nothing) return;
    EXPECT_TRUE(save_step(store, 4));
    if (before == Before::older) return;
    EXPECT_TRUE(save_step(store, before == Before::older_two ? 5 : 6));
    if (before == Before::same_step_damaged)
      test::write_file(folder / "step-00000006" / "manifest.json", "{}");
  }
  std::int64_t newest() const {
    const auto found = newest_verified(folder).path;
    return found ? verify_checkpoint(*found)->step : -1;
  }
  TemporaryFolder run;
  std::filesystem::path trash = run.path() / "trash";
  std::filesystem::path folder = branch_folder(run.path());
};

std::int64_t newest_before(Before before) {
  switch (before) {
    case Before::nothing:
      return -1;
    case Before::older:
      return 4;
    case Before::older_two:
      return 5;
    case Before::same_step:
      return 6;
    case Before::same_step_damaged:
      return 4;
  }
  return -1;
}

class CrashTest : public testing::TestWithParam<std::tuple<Before, Loss>> {};

TEST_P(CrashTest, AtEveryOperationLeavesTheExpectedCheckpoint) {
  const auto [before, loss] = GetParam();
  bool finished = false;
  int stopped = 0;
  for (int operation = 1; !finished; ++operation) {
    ASSERT_LT(operation, 100);
    Scene world(before);
    FaultyDisk disk(world.trash);
    CheckpointStore store(world.folder, disk);
    disk.crash_at(operation);
    try {
      ASSERT_TRUE(save_step(store, 6, 1));
      finished = true;
    } catch (const Crash&) {
      ++stopped;
    }
    disk.lose(loss);
    const std::int64_t newest = world.newest();
    if (finished) {
      EXPECT_EQ(newest, 6);
      break;
    }
    EXPECT_TRUE(newest == 6 || newest == newest_before(before))
        << "stopped at " << operation << ": " << disk.last() << ", found " << newest;
    // Once the commit has reached the device it stays; before the commit nothing may show.
    const bool committed = std::filesystem::exists(world.folder / "step-00000006" / "rank-0.safetensors") &&
                           before != Before::same_step && before != Before::same_step_damaged;
    if (committed) {
      EXPECT_EQ(newest, 6) << "stopped at " << operation << ": " << disk.last();
    }

    // The next start cleans up and goes on.
    PosixDisk plain;
    CheckpointStore again(world.folder, plain);
    again.remove_leftovers();
    EXPECT_EQ(world.newest(), newest);
    if (before != Before::same_step_damaged) {
      for (const auto& path : list_checkpoints(world.folder)) {
        EXPECT_TRUE(verify_checkpoint(path)) << "half of " << path << ", stopped at " << disk.last();
      }
    }
    ASSERT_TRUE(save_step(again, 7, 1));
    EXPECT_EQ(world.newest(), 7);
    for (const auto& name : test::names_in(world.folder))
      EXPECT_EQ(name.find(".tmp-"), std::string::npos) << name;
  }
  EXPECT_GE(stopped, 14);  // every operation of a save: a dozen, and more with folders to make or to remove
}

INSTANTIATE_TEST_SUITE_P(All, CrashTest,
                         testing::Combine(testing::Values(Before::nothing, Before::older, Before::older_two,
                                                          Before::same_step, Before::same_step_damaged),
                                          testing::Values(Loss::nothing, Loss::everything, Loss::content,
                                                          Loss::names)));

class DiskErrorTest : public testing::TestWithParam<std::tuple<std::errc, bool>> {};

TEST_P(DiskErrorTest, AtEveryOperationIsToldAndHurtsNothing) {
  const auto [code, lasting] = GetParam();
  const auto error = std::make_error_code(code);
  for (int operation = 1;; ++operation) {
    ASSERT_LT(operation, 100);
    Scene world(Before::older_two);
    FaultyDisk disk(world.trash);
    CheckpointStore store(world.folder, disk);
    disk.fail_at(operation, error, lasting);
    const auto stored = save_step(store, 6, 1);
    const bool reached = disk.operations() >= operation;
    if (stored) {
      EXPECT_EQ(world.newest(), 6);
      if (reached) {
        EXPECT_FALSE(stored->notes.empty()) << disk.last();  // failed while making room
      }
    } else {
      EXPECT_NE(stored.error().message.find(error.message()), std::string::npos) << stored.error().message;
      EXPECT_NE(stored.error().message.find("The older checkpoints are untouched"), std::string::npos);
      EXPECT_GE(world.newest(), 5) << operation;
      EXPECT_TRUE(verify_checkpoint(world.folder / "step-00000004"));
      EXPECT_TRUE(verify_checkpoint(world.folder / "step-00000005"));
    }
    // When the disk works again the next save does too.
    disk.fail_at(0, {}, false);
    ASSERT_TRUE(save_step(store, 8, 1));
    EXPECT_EQ(world.newest(), 8);
    if (!reached) {
      EXPECT_GE(operation, 20);
      return;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, DiskErrorTest,
                         testing::Combine(testing::Values(std::errc::no_space_on_device, std::errc::io_error,
                                                          std::errc::read_only_file_system,
                                                          std::errc::permission_denied),
                                          testing::Bool()));

/// A disk that lies: what is read back isn't what was written.
class LyingDisk final : public Disk {
 public:
  std::error_code make_folder(const std::filesystem::path& path) override { return disk_.make_folder(path); }
  std::error_code create(const std::filesystem::path& path, int& fd) override {
    return disk_.create(path, fd);
  }
  std::error_code write(int fd, std::span<const std::byte> bytes) override {
    std::vector<std::byte> copy(bytes.begin(), bytes.end());
    copy.back() ^= std::byte{1};
    return disk_.write(fd, copy);
  }
  std::error_code sync(int fd) override { return disk_.sync(fd); }
  std::error_code close(int fd) override { return disk_.close(fd); }
  std::error_code sync_folder(const std::filesystem::path& path) override { return disk_.sync_folder(path); }
  std::error_code link(const std::filesystem::path& from, const std::filesystem::path& to) override {
    return disk_.link(from, to);
  }
  std::error_code rename(const std::filesystem::path& from, const std::filesystem::path& to) override {
    return disk_.rename(from, to);
  }
  std::error_code remove(const std::filesystem::path& path) override { return disk_.remove(path); }

 private:
  PosixDisk disk_;
};

TEST(LyingDiskTest, WhatCantBeReadBackIsNeverCommitted) {
  Scene world(Before::older);
  LyingDisk disk;
  CheckpointStore store(world.folder, disk);
  const auto stored = save_step(store, 6, 1);
  ASSERT_FALSE(stored);
  EXPECT_NE(stored.error().message.find("what was just saved can't be read back"), std::string::npos);
  EXPECT_EQ(test::names_in(world.folder), std::vector<std::string>{"step-00000004"});
}

}  // namespace
}  // namespace footplate
