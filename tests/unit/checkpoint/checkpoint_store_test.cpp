#include "runtime/checkpoint/checkpoint_store.h"

#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fixture.h"
#include "run_files/checkpoint_folders.h"
#include "runtime/checkpoint/checkpoint_reader.h"
#include "runtime/checkpoint/resume.h"

namespace footplate {
namespace {

using test::save_step;
using test::SmallState;
using test::TemporaryFolder;

class StoreTest : public testing::Test {
 protected:
  TemporaryFolder run_;
  PosixDisk disk_;
  std::filesystem::path folder_ = branch_folder(run_.path());
  CheckpointStore store_{folder_, disk_};
};

TEST_F(StoreTest, RoundTrip) {
  const auto stored = save_step(store_, 1000);
  ASSERT_TRUE(stored) << stored.error().message;
  EXPECT_EQ(stored->path, folder_ / "step-00001000");
  EXPECT_EQ(test::names_in(stored->path), (std::vector<std::string>{"manifest.json", "rank-0.safetensors"}));
  std::uint64_t bytes = 0;
  for (const auto& entry : std::filesystem::directory_iterator(stored->path)) bytes += entry.file_size();
  EXPECT_EQ(stored->bytes, bytes);

  const auto manifest = read_manifest(stored->path);
  ASSERT_TRUE(manifest) << manifest.error().message;
  EXPECT_EQ(manifest->step, 1000);
  EXPECT_EQ(manifest->progress["samples"], 32000);
  const auto loaded = test::load(stored->path);
  ASSERT_TRUE(loaded) << loaded.error().message;
  EXPECT_EQ(*loaded, test::contents_of(SmallState(1000).views()));
}

TEST_F(StoreTest, NobodyElseCanReadIt) {
  const auto stored = save_step(store_, 1);
  ASSERT_TRUE(stored);
  struct stat status {};
  for (const auto& path : {folder_.parent_path(), folder_, stored->path}) {
    ASSERT_EQ(::stat(path.c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 0777, 0700u) << path;
  }
  ASSERT_EQ(::stat((stored->path / "manifest.json").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600u);
}

TEST_F(StoreTest, MatchNamesWhatIsMissingExtraAndDifferent) {
  const auto loaded = CheckpointReader::open(save_step(store_, 1)->path);
  ASSERT_TRUE(loaded);
  std::vector<TensorSpec> specs{{"model/w", TensorType::float32, {2, 2}},
                                {"optim/step", TensorType::int64, {}}};
  EXPECT_TRUE(loaded->matches(specs));
  specs[0].shape = {4};
  specs[1].name = "optim/steps";
  const auto different = loaded->matches(specs);
  ASSERT_FALSE(different);
  const std::string& message = different.error().message;
  EXPECT_NE(message.find("missing: optim/steps"), std::string::npos) << message;
  EXPECT_NE(message.find("different: model/w (here F32[2, 2], the model has F32[4])"), std::string::npos)
      << message;
  EXPECT_NE(message.find("unknown here: optim/step."), std::string::npos) << message;
}

TEST_F(StoreTest, TagsAreNamesOfTheirOwn) {
  ASSERT_TRUE(save_step(store_, 5));
  ASSERT_TRUE(save_step(store_, 5, 0, "mine"));
  EXPECT_EQ(test::names_in(folder_), (std::vector<std::string>{"step-00000005", "step-00000005-mine"}));
  const auto refused = save_step(store_, 5, 0, "../evil");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, ErrorKind::usage);
  EXPECT_NE(refused.error().message.find("'../evil'; a tag is 1 to 64 letters"), std::string::npos);
}

TEST_F(StoreTest, SavingAStepAgainReplacesTheEarlierOne) {
  ASSERT_TRUE(save_step(store_, 5));
  Manifest second = test::manifest_at(5);
  second.run = "later";
  ASSERT_TRUE(store_.save(second, "rank-0.safetensors", SmallState(6).views(), {0}));
  EXPECT_EQ(test::names_in(folder_), std::vector<std::string>{"step-00000005"});
  EXPECT_EQ(read_manifest(folder_ / "step-00000005")->run, "later");
}

TEST_F(StoreTest, LeftoversOfAnInterruptedSaveAreRemovedAtTheStart) {
  ASSERT_TRUE(save_step(store_, 5));
  const auto leftover = folder_ / with_suffix("step-00000006", Suffix::temporary);
  std::filesystem::create_directory(leftover);
  test::write_file(leftover / "rank-0.safetensors", "half");
  const auto other = folder_ / "notes.txt";
  test::write_file(other, "the user's own");
  const auto notes = store_.remove_leftovers();
  ASSERT_EQ(notes.size(), 1u);
  EXPECT_NE(notes[0].find("left by an interrupted save"), std::string::npos);
  EXPECT_EQ(test::names_in(folder_), (std::vector<std::string>{"notes.txt", "step-00000005"}));
}

TEST_F(StoreTest, FolderThatCantBeWrittenIsExplained) {
  test::write_file(run_.path() / "checkpoints", "a file in the way");
  const auto stored = save_step(store_, 5);
  ASSERT_FALSE(stored);
  EXPECT_NE(stored.error().message.find("Not a directory"), std::string::npos) << stored.error().message;
}

/// What a child process answers that saves under a limit on the size of files.
int save_in_child_with_limit(CheckpointStore& store, rlim_t limit) {
  const pid_t child = ::fork();
  if (child == 0) {
    const rlimit small{limit, limit};
    ::signal(SIGXFSZ, SIG_IGN);
    ::setrlimit(RLIMIT_FSIZE, &small);
    const auto stored = save_step(store, 6);
    const bool told = !stored && stored.error().message.find("ulimit -f") != std::string::npos;
    ::_exit(stored ? 0 : told ? 1 : 2);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 99;
}

TEST_F(StoreTest, AFileThatCantGrowIsAnErrorAndLeavesNothing) {
  ASSERT_TRUE(save_step(store_, 5));
  for (const rlim_t limit : {0u, 1u, 100u, 170u, 400u}) {
    EXPECT_EQ(save_in_child_with_limit(store_, limit), 1) << limit;
    EXPECT_EQ(test::names_in(folder_), std::vector<std::string>{"step-00000005"}) << limit;
  }
  EXPECT_EQ(save_in_child_with_limit(store_, 100000), 0);
  EXPECT_EQ(newest_verified(folder_).path, folder_ / "step-00000006");
}

}  // namespace
}  // namespace footplate
