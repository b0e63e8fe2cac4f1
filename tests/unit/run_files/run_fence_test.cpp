#include "run_files/run_fence.h"

#include <atomic>
#include <thread>

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
  EXPECT_TRUE(RunFence(folder_, "aaaaaaaa", 2, 0).holds());
  EXPECT_TRUE(RunFence(folder_, "", 2, 0).holds());
}

TEST_F(RunFenceTest, AnotherCommandHasTakenTheRun) {
  const RunFence fence(folder_, "aaaaaaaa", 2, 0);
  record("bbbbbbbb");
  EXPECT_FALSE(fence.holds());
  EXPECT_TRUE(fence.is_taken_over());
}

TEST_F(RunFenceTest, TheNextStartHasBegun) {
  write(config_name(3), "{}");
  EXPECT_TRUE(RunFence(folder_, "aaaaaaaa", 3, 0).holds());
  EXPECT_FALSE(RunFence(folder_, "aaaaaaaa", 2, 0).holds());
  EXPECT_FALSE(RunFence(folder_, "aaaaaaaa", 2, 0).is_taken_over()) << "the mpirun of both has others";
}

TEST_F(RunFenceTest, ADiskThatIsAwaySaysNothing) {
  std::filesystem::remove(folder_ / kRunFile);
  EXPECT_TRUE(RunFence(folder_, "aaaaaaaa", 2, 0).holds());
}

TEST_F(RunFenceTest, OneOfTwoSidesGoesOn) {
  const RunFence zero(folder_, "aaaaaaaa", 2, 0), one(folder_, "aaaaaaaa", 2, 1),
      two(folder_, "aaaaaaaa", 2, 2);
  EXPECT_EQ(one.claim({{1, 2}, {"n1", "n2"}}), Claim::claimed);  // 0 is cut off
  EXPECT_EQ(zero.claim({{0}, {"n0"}}), Claim::left_out);
  EXPECT_TRUE(WorldTerms(folder_, 2).has_host("n1"));
  EXPECT_FALSE(WorldTerms(folder_, 2).has_host("n0"));
  EXPECT_FALSE(zero.holds());
  EXPECT_TRUE(one.holds() && two.holds());
  EXPECT_EQ(two.claim({{2}, {"n2"}, {"n1"}}), Claim::claimed);  // and then n1 is lost
  const auto term = WorldTerms(folder_, 2).newest();
  ASSERT_TRUE(term);
  EXPECT_EQ(term->number, 2);
  EXPECT_EQ(term->world.lost_hosts, std::vector<std::string>{"n1"});
  EXPECT_FALSE(one.holds());
  EXPECT_FALSE(zero.holds());
  EXPECT_EQ(RunFence(folder_, "aaaaaaaa", 12, 0).claim({{0}, {"n0"}}), Claim::claimed);  // of a later start
  forget_terms(folder_);
  EXPECT_TRUE(zero.holds());
}

TEST_F(RunFenceTest, AStartThatIsOverLeavesAllOut) {
  const RunFence zero(folder_, "aaaaaaaa", 2, 0), one(folder_, "aaaaaaaa", 2, 1);
  EXPECT_EQ(one.claim({{1}, {"n1"}}), Claim::claimed);
  WorldTerms(folder_, 2).close("n0");
  EXPECT_FALSE(zero.holds() || one.holds());
  EXPECT_EQ(one.claim({{1}, {"n1"}}), Claim::left_out);
  EXPECT_TRUE(WorldTerms(folder_, 2).has_host("n0")) << "its lease is footplate run's again";
  EXPECT_TRUE(RunFence(folder_, "aaaaaaaa", 3, 0).holds()) << "the next start";
}

TEST_F(RunFenceTest, ADiskThatTakesNothingLeavesNobodyOut) {
  const RunFence fence(folder_, "aaaaaaaa", 2, 0);
  write("terms", "no folder");
  EXPECT_EQ(fence.claim({{0}, {"n0"}}), Claim::no_disk);
  EXPECT_TRUE(fence.holds());
}

TEST_F(RunFenceTest, ATermIsClaimedByOne) {
  std::atomic<int> claimed = 0;
  std::vector<std::thread> sides;
  for (int origin = 0; origin < 8; ++origin)
    sides.emplace_back([&, origin] {
      if (RunFence(folder_, "aaaaaaaa", 2, origin).claim({{origin}, {}}) == Claim::claimed) ++claimed;
    });
  for (auto& side : sides) side.join();
  EXPECT_EQ(claimed, 1);
}

}  // namespace
}  // namespace footplate
