// What may pass is tried again.
#include "runtime/checkpoint/tries.h"

#include <gmock/gmock.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <span>
#include <string>
#include <vector>

#include "faulty_disk.h"
#include "fixture.h"
#include "run_files/checkpoint_folders.h"
#include "runtime/checkpoint/open_file.h"

namespace {

/// What the next reads of this program fail with, one after the other.
std::vector<int> failing_reads;  // NOLINT(cppcoreguidelines-avoid-non-const-global-variables)

}  // namespace

/// The C library's, for the whole test program: only this test has it fail.
extern "C" ssize_t pread(int descriptor, void* to, size_t bytes, off_t offset) {
  if (!failing_reads.empty()) {
    errno = failing_reads.front();
    failing_reads.erase(failing_reads.begin());
    return -1;
  }
  return ::syscall(SYS_pread64, descriptor, to, bytes, offset);
}

namespace footplate {
namespace {

using std::chrono::milliseconds;
using test::FaultyDisk;
using test::save_step;
using test::TemporaryFolder;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr Retries kQuick{.tries = 4, .pause = milliseconds(1)};

TEST(MayPass, NamesWhatDevicesNetworksAndFullDisksSay) {
  for (const int error : {EIO, ESTALE, ETIMEDOUT, ENOSPC, EDQUOT, ENOTCONN, EMFILE})
    EXPECT_TRUE(may_pass({error, std::generic_category()})) << error;
  for (const int error : {0, EACCES, EROFS, ENOENT, EEXIST, EFBIG, ENAMETOOLONG, ECANCELED, ELOOP})
    EXPECT_FALSE(may_pass({error, std::generic_category()})) << error;
}

class RetriesTest : public testing::Test {
 protected:
  RetriesTest() { std::filesystem::create_directory(trash_); }

  CheckpointStore store(Retries retries = kQuick) {
    return CheckpointStore(folder_, disk_, retries, [this](const std::string& text) {
      told_.push_back(text);
      if (passes_) disk_.fail_at(0, {}, false);
    });
  }

  TemporaryFolder run_;
  std::filesystem::path trash_ = run_.path() / "trash";
  std::filesystem::path folder_ = branch_folder(run_.path());
  FaultyDisk disk_{trash_};
  std::vector<std::string> told_;
  bool passes_ = false;  ///< once it was told
};

/// Whether it is the folder's last sync that failed, after which the checkpoint has its name.
bool is_last_sync(const Error& error) {
  return error.message.find("syncing the folder") != std::string::npos;
}

TEST_F(RetriesTest, ASaveGetsOverAnErrorAtAnyOfItsOperations) {
  std::int64_t step = 0;
  for (const bool lasting : {false, true})
    for (const auto code : {std::errc::io_error, std::errc::no_space_on_device}) {
      int reached = 0;
      passes_ = true;
      for (int operation = 1;; ++operation) {
        ASSERT_LT(operation, 100);
        auto to = store();
        disk_.fail_at(operation, std::make_error_code(code), lasting);
        told_.clear();
        const auto stored = save_step(to, ++step, 2);
        const bool beyond = stored && told_.empty() && stored->notes.empty();
        disk_.fail_at(0, {}, false);
        EXPECT_TRUE(stored || is_last_sync(stored.error())) << disk_.last() << stored.error().message;
        EXPECT_TRUE(verify_checkpoint(folder_ / folder_name(step, ""))) << operation;
        if (beyond && operation > 20) break;
        if (told_.empty()) continue;
        EXPECT_THAT(told_, SizeIs(1));
        EXPECT_THAT(told_.front(), HasSubstr("untouched. It is tried again in 0.001 s"));
        ++reached;
        for (const auto& name : test::names_in(folder_))
          EXPECT_FALSE(name.starts_with(folder_name(step, "") + ".tmp-")) << name;
      }
      EXPECT_GE(reached, 10);
    }
}

TEST_F(RetriesTest, WhatLastsFailsAfterTheLastTry) {
  auto to = store();
  disk_.fail_at(3, std::make_error_code(std::errc::no_space_on_device), /*lasting=*/true);
  const auto stored = save_step(to, 5);
  ASSERT_FALSE(stored);
  EXPECT_THAT(stored.error().message, HasSubstr("No space left on device"));
  EXPECT_THAT(told_, SizeIs(3));
}

TEST_F(RetriesTest, ADiskThatIsFreedMeanwhileTakesTheCheckpoint) {
  auto to = store();
  passes_ = true;
  disk_.fail_at(6, std::make_error_code(std::errc::no_space_on_device), /*lasting=*/true);
  EXPECT_TRUE(save_step(to, 5));
  EXPECT_THAT(told_, SizeIs(1));
}

TEST_F(RetriesTest, WhatCannotPassIsTriedOnce) {
  auto to = store();
  disk_.fail_at(3, std::make_error_code(std::errc::permission_denied), /*lasting=*/false);
  EXPECT_FALSE(save_step(to, 5));
  EXPECT_THAT(told_, IsEmpty());
}

TEST_F(RetriesTest, APartAndTheManifestAreWrittenAgain) {
  const test::SmallState state(5);
  passes_ = true;
  for (const bool lasting : {false, true})
    for (int operation = 1, ended = 0; ended == 0; ++operation) {
      ASSERT_LT(operation, 100);
      auto to = store();
      const auto temporary = to.begin(5, "");
      ASSERT_TRUE(temporary);
      disk_.fail_at(operation, std::make_error_code(std::errc::io_error), lasting);
      const auto part = to.write_part(*temporary, 5, "rank-0.safetensors", state.views());
      ASSERT_TRUE(part) << disk_.last() << part.error().message;
      Manifest manifest = test::manifest_at(5);
      manifest.files = {*part};
      const auto stored = to.commit(*temporary, manifest, {});
      const bool reached = disk_.operations() >= operation;
      disk_.fail_at(0, {}, false);
      if (!stored) {
        EXPECT_TRUE(stored.error().message.find("sync") != std::string::npos ||
                    stored.error().message.find("committing it") != std::string::npos ||
                    stored.error().message.find("aside") != std::string::npos)
            << stored.error().message;
        to.abandon(*temporary);
      }
      if (!reached && told_.empty()) ended = operation;
      told_.clear();
    }
  EXPECT_TRUE(verify_checkpoint(folder_ / "step-00000005"));
}

TEST_F(RetriesTest, ATryThatIsGivenUpDoesntWaitForTheNext) {
  auto to = store({.tries = 4, .pause = std::chrono::hours(1)});
  const auto temporary = to.begin(5, "");
  disk_.fail_at(2, std::make_error_code(std::errc::io_error), /*lasting=*/true);
  std::atomic<int> asked = 0;
  const test::SmallState state(5);
  EXPECT_FALSE(to.write_part(*temporary, 5, "rank-0.safetensors", state.views(), {},
                             [&](std::size_t) { return ++asked < 3; }));
  EXPECT_EQ(asked, 3);
}

class ReadingTest : public testing::Test {
 protected:
  void TearDown() override { failing_reads.clear(); }

  Result<std::string> read_with(std::vector<int> errors, Retries retries = kQuick) {
    const auto path = run_.path() / "file";
    test::write_file(path, "content");
    failing_reads = std::move(errors);
    return read_text(path, 100, retries);
  }
  TemporaryFolder run_;
};

TEST_F(ReadingTest, GetsOverWhatPasses) {
  for (const int error : {EIO, ESTALE}) EXPECT_EQ(read_with({error, error}), "content") << error;
  EXPECT_THAT(failing_reads, IsEmpty());
}

TEST_F(ReadingTest, TellsWhatLastsOrCannotPass) {
  const auto lasting = read_with({EIO, EIO, EIO, EIO});
  ASSERT_FALSE(lasting);
  EXPECT_THAT(lasting.error().message, HasSubstr("can't be read: Input/output error"));
  EXPECT_FALSE(read_with({EINVAL}));
  EXPECT_FALSE(read_with({EIO}, {})) << "a listing doesn't wait";
}

}  // namespace
}  // namespace footplate
