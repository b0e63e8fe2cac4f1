#include "run_files/run_fence.h"

#include "run_files/file_names.h"
#include "tests/unit/run_files/folder_fixture.h"

namespace footplate {
namespace {

class RunFenceTest : public test::FolderTest {
 protected:
  RunFenceTest() { record("aaaaaaaa"); }
  void record(const std::string& id) const { write(kRunFile, R"({"id": ")" + id + "\"}\n"); }
};

TEST_F(RunFenceTest, HoldsForTheNewestStart) {
  EXPECT_TRUE(RunFence(folder_, "aaaaaaaa", 2).holds());
  EXPECT_TRUE(RunFence(folder_, "", 2).holds());
}

TEST_F(RunFenceTest, AnotherCommandHasTakenTheRun) {
  const RunFence fence(folder_, "aaaaaaaa", 2);
  record("bbbbbbbb");
  EXPECT_FALSE(fence.holds());
}

TEST_F(RunFenceTest, TheNextStartHasBegun) {
  write(config_name(3), "{}");
  EXPECT_TRUE(RunFence(folder_, "aaaaaaaa", 3).holds());
  EXPECT_FALSE(RunFence(folder_, "aaaaaaaa", 2).holds());
}

TEST_F(RunFenceTest, ADiskThatIsAwaySaysNothing) {
  std::filesystem::remove(folder_ / kRunFile);
  EXPECT_TRUE(RunFence(folder_, "aaaaaaaa", 2).holds());
}

}  // namespace
}  // namespace footplate
