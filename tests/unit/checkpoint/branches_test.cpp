#include "runtime/checkpoint/branches.h"

#include <gmock/gmock.h>

#include <thread>

#include "fixture.h"
#include "run_files/checkpoint_folders.h"
#include "runtime/checkpoint/resume.h"

namespace footplate {
namespace {

using test::TemporaryFolder;
using testing::HasSubstr;

class BranchesTest : public testing::Test {
 protected:
  BranchesTest() {
    for (const std::int64_t step : {100, 200, 300}) save("main", step);
  }

  void save(const std::string& branch, std::int64_t step, const std::string& tag = "", bool best = false) {
    CheckpointStore store(branch_folder(run_.path(), branch), disk_);
    Manifest manifest = test::manifest_at(step, tag);
    manifest.branch = branch;
    manifest.best = best;
    ASSERT_TRUE(store.save(manifest, "rank-0.safetensors", test::SmallState(1).views(), {0}));
    std::this_thread::sleep_for(std::chrono::milliseconds(2));  // `created` has milliseconds
  }

  /// "main/step-00000300", or the error's message.
  std::string found(const std::string& ref, std::int64_t now = 350, const std::string& branch = "main") {
    const auto checkpoint = find_checkpoint(run_.path(), ref, {branch, now, best_});
    if (!checkpoint) return checkpoint.error().message;
    return checkpoint->path.parent_path().filename().string() + "/" + checkpoint->path.filename().string();
  }

  TemporaryFolder run_;
  PosixDisk disk_;
  std::optional<BestEvaluation> best_;  ///< that the run knows
};

TEST_F(BranchesTest, AStepTakesTheNearestEarlierOne) {
  EXPECT_EQ(found("300"), "main/step-00000300");
  EXPECT_EQ(found("299"), "main/step-00000200");
  EXPECT_EQ(found("-100"), "main/step-00000200") << "350 - 100";
  EXPECT_EQ(found("-50"), "main/step-00000300");
  EXPECT_EQ(found("-0"), "main/step-00000300");
  EXPECT_THAT(found("99"), HasSubstr("no checkpoint of step 99 or before; there are main/step-00000300, "));
  EXPECT_THAT(found("-300"), HasSubstr("of step 50 or before"));
  EXPECT_THAT(found("400"), HasSubstr("step 400 hasn't come yet, the run is at step 350"));
}

TEST_F(BranchesTest, NamesTagsAndTheBest) {
  EXPECT_EQ(found("latest"), "main/step-00000300");
  EXPECT_THAT(found("best"), HasSubstr("no checkpoint is of the step of the best evaluation"));
  save("main", 150, "before-spike");
  save("main", 160, "", /*best=*/true);
  EXPECT_EQ(found("best"), "main/step-00000160");
  EXPECT_EQ(found("before-spike"), "main/step-00000150-before-spike");
  EXPECT_EQ(found("step-00000200"), "main/step-00000200");
  EXPECT_THAT(found("before-spke"), HasSubstr("did you mean before-spike?"));
  EXPECT_THAT(found("latst"), HasSubstr("did you mean latest?"));
  EXPECT_THAT(found(""), HasSubstr("there is no checkpoint ''"));
}

TEST_F(BranchesTest, TheBestIsOfTheBestEvaluationsStepAlone) {
  save("main", 160, "", /*best=*/true);  // as it was known then
  best_ = {1.5, 200, "main"};
  EXPECT_EQ(found("best"), "main/step-00000200") << "evaluated after it was saved";
  save("from-100", 100);
  save("from-100", 200);
  EXPECT_EQ(found("best", 350, "from-100"), "main/step-00000200") << "another branch's step 200 is another";
  best_ = {1.25, 210, "main"};
  EXPECT_THAT(found("best"), HasSubstr("(loss 1.2500 at step 210); ckpt.keep_best = 1 saves those to come"));
}

TEST_F(BranchesTest, APathHasToBeOfThisRun) {
  const std::string own = (branch_folder(run_.path()) / "step-00000100").string();
  EXPECT_EQ(found(own), "main/step-00000100");
  EXPECT_EQ(found("checkpoints/main/step-00000100"), "main/step-00000100");
  EXPECT_THAT(found("checkpoints/main/step-00000101"), HasSubstr("is not a checkpoint's folder"));
  EXPECT_THAT(found("checkpoints/main/../../../x/y/z"), HasSubstr("is no checkpoint of this run"));
  TemporaryFolder other;
  EXPECT_THAT(found(other.path() / "checkpoints/main/step-00000100"),
              HasSubstr("footplate run CONFIG --resume PATH"));
}

TEST_F(BranchesTest, TheOwnBranchCountsForMore) {
  save("from-200", 200);
  save("from-200", 250);
  EXPECT_EQ(found("300", 350, "from-200"), "from-200/step-00000250");
  EXPECT_EQ(found("latest", 350, "from-200"), "from-200/step-00000250");
  EXPECT_EQ(found("150", 350, "from-200"), "main/step-00000100") << "what it came from";
  EXPECT_EQ(found("300", 350, "main"), "main/step-00000300");
}

TEST_F(BranchesTest, AutoGoesOnWithTheBranchThatWasSavedIntoLast) {
  save("from-200", 200);
  EXPECT_EQ(resolve_resume(run_.path(), "auto")->path,
            branch_folder(run_.path(), "from-200") / "step-00000200");
  EXPECT_EQ(resolve_resume("/", run_.path())->path, branch_folder(run_.path(), "from-200") / "step-00000200");
  save("main", 310);
  EXPECT_EQ(resolve_resume(run_.path(), "auto")->path, branch_folder(run_.path()) / "step-00000310");
}

TEST_F(BranchesTest, AutoGoesBackToAnOlderBranchWhereNothingVerifies) {
  save("from-200", 200);
  const auto tensors = branch_folder(run_.path(), "from-200") / "step-00000200" / "rank-0.safetensors";
  test::write_file(tensors, "");
  const auto choice = resolve_resume(run_.path(), "auto");
  EXPECT_EQ(choice->path, branch_folder(run_.path()) / "step-00000300");
  ASSERT_EQ(choice->skipped.size(), 1U);
  EXPECT_THAT(choice->skipped[0], HasSubstr("skipped step-00000200"));
}

TEST_F(BranchesTest, NamesOfNewOnes) {
  EXPECT_EQ(new_branch(run_.path(), "", 200), "from-200");
  save("from-200", 200);
  EXPECT_EQ(new_branch(run_.path(), "", 200), "from-200-2");
  EXPECT_EQ(new_branch(run_.path(), "half-lr", 200), "half-lr");
  EXPECT_THAT(new_branch(run_.path(), "main", 200).error().message,
              HasSubstr("there is a branch \"main\" already"));
  EXPECT_THAT(new_branch(run_.path(), "../up", 200).error().message, HasSubstr("can't be a folder's name"));
}

}  // namespace
}  // namespace footplate
