#include "runtime/checkpoint/resume.h"

#include <gmock/gmock.h>

#include "fixture.h"
#include "run_files/checkpoint_folders.h"

namespace footplate {
namespace {

using test::save_step;
using test::TemporaryFolder;
using testing::AllOf;
using testing::EndsWith;
using testing::HasSubstr;

class ResumeTest : public testing::Test {
 protected:
  void damage(std::int64_t step) {
    const auto path = folder_ / ("step-0000000" + std::to_string(step)) / "rank-0.safetensors";
    std::string text = test::read_file(path);
    text.back() = static_cast<char>(~text.back());
    test::write_file(path, text);
  }

  TemporaryFolder run_;
  PosixDisk disk_;
  std::filesystem::path folder_ = branch_folder(run_.path());
  CheckpointStore store_{folder_, disk_};
};

TEST_F(ResumeTest, AutoStartsFreshWhereThereIsNothing) {
  const auto choice = resolve_resume(run_.path(), "auto");
  ASSERT_TRUE(choice);
  EXPECT_FALSE(choice->path);
  EXPECT_TRUE(choice->skipped.empty());
}

TEST_F(ResumeTest, AutoTakesTheNewestThatVerifiesAndNamesTheSkipped) {
  for (std::int64_t step = 1; step <= 5; ++step) ASSERT_TRUE(save_step(store_, step));
  for (std::int64_t newest = 5; newest >= 1; --newest) {
    const auto choice = resolve_resume(run_.path(), "auto");
    ASSERT_TRUE(choice);
    EXPECT_EQ(choice->path, folder_ / ("step-0000000" + std::to_string(newest)));
    ASSERT_EQ(choice->skipped.size(), static_cast<std::size_t>(5 - newest));
    if (newest < 5) {
      EXPECT_NE(choice->skipped[0].find("skipped step-00000005: "), std::string::npos) << choice->skipped[0];
      EXPECT_NE(choice->skipped[0].find("rank-0.safetensors is refused: its content is damaged"),
                std::string::npos);
    }
    damage(newest);
  }
  const auto none = resolve_resume(run_.path(), "auto");
  ASSERT_FALSE(none);
  EXPECT_NE(none.error().message.find("to begin at step 0:"), std::string::npos) << none.error().message;
  EXPECT_NE(none.error().message.find("skipped step-00000001: "), std::string::npos) << none.error().message;
}

TEST_F(ResumeTest, AutoBeginsAtStep0WhereThereIsNone) {
  TemporaryFolder other;
  const auto choice = resolve_resume(other.path(), "auto");
  ASSERT_TRUE(choice);
  EXPECT_FALSE(choice->path);
}

TEST_F(ResumeTest, PathOfACheckpointOrOfARun) {
  ASSERT_TRUE(save_step(store_, 1));
  ASSERT_TRUE(save_step(store_, 2));
  TemporaryFolder other;
  EXPECT_EQ(resolve_resume(other.path(), (folder_ / "step-00000001").string())->path,
            folder_ / "step-00000001");
  EXPECT_EQ(resolve_resume(other.path(), run_.path().string())->path, folder_ / "step-00000002");
}

TEST_F(ResumeTest, ADamagedCheckpointNamesTheNewestGoodOneBeforeIt) {
  for (std::int64_t step = 1; step <= 4; ++step) ASSERT_TRUE(save_step(store_, step));
  const auto message = [&](const char* name) {
    return resolve_resume(run_.path(), (folder_ / name).string()).error().message;
  };
  damage(2);
  damage(3);
  EXPECT_THAT(message("step-00000003"),
              EndsWith("the newest good one before it: --resume " + (folder_ / "step-00000001").string()));
  damage(1);
  EXPECT_THAT(message("step-00000003"),
              AllOf(HasSubstr("damaged"), EndsWith("no older one in " + folder_.string() + " is good")));
}

TEST_F(ResumeTest, WhatCantBeResumedIsExplained) {
  const auto error = [&](const std::string& resume) { return resolve_resume(run_.path(), resume).error(); };
  EXPECT_EQ(error("/nowhere").kind, ErrorKind::usage);
  EXPECT_NE(error("/nowhere").message.find("give auto, the folder of a checkpoint"), std::string::npos);
  EXPECT_EQ(error(run_.path().string()).kind, ErrorKind::usage);
  EXPECT_NE(error(run_.path().string()).message.find("neither a checkpoint"), std::string::npos);
  ASSERT_TRUE(save_step(store_, 1));
  damage(1);
  EXPECT_NE(
      error(run_.path().string()).message.find("has no checkpoint that can be used\n  skipped step-00000001"),
      std::string::npos);
  EXPECT_NE(error((folder_ / "step-00000001").string()).message.find("damaged"), std::string::npos);
}

}  // namespace
}  // namespace footplate
