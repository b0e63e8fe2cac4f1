#include "run_files/checkpoint_folders.h"

#include <gmock/gmock.h>

#include "tests/unit/records/fixture.h"

namespace footplate {
namespace {

TEST(FolderName, RoundTrip) {
  EXPECT_EQ(folder_name(1000, ""), "step-00001000");
  EXPECT_EQ(folder_name(1234567890, "x-1"), "step-1234567890-x-1");
  const auto tagged = parse_folder_name("step-00000007-before-spike");
  ASSERT_TRUE(tagged);
  EXPECT_EQ(tagged->step, 7);
  EXPECT_EQ(tagged->tag, "before-spike");
  EXPECT_FALSE(tagged->replaced);
  const auto replaced = parse_folder_name(with_suffix("step-00000007", Suffix::replaced));
  ASSERT_TRUE(replaced);
  EXPECT_TRUE(replaced->replaced);
}

TEST(FolderName, OthersAreNotCheckpoints) {
  for (const char* name :
       {"", "step-", "step-7", "step-0000000007", "step--0000007", "step-00001000-", "step-00001000x",
        "step-99999999999999999999", "latest", "step-00001000.old", "step-00001000-a.b"})
    EXPECT_FALSE(parse_folder_name(name)) << name;
  const std::string temporary = with_suffix("step-00001000", Suffix::temporary);
  EXPECT_FALSE(parse_folder_name(temporary));
  EXPECT_TRUE(is_temporary(temporary));
  EXPECT_FALSE(is_temporary("step-00001000-tmp-1"));
  EXPECT_FALSE(is_temporary("mine.tmp-1"));
}

TEST(FolderName, ListIsNewestFirst) {
  test::TemporaryFolder folder;
  for (const char* name : {"step-00000002", "step-00000010", "step-00000010.replaced-ab", "step-100000000",
                           "other", "step-00000011.tmp-ab"})
    std::filesystem::create_directory(folder.path() / name);
  std::vector<std::string> names;
  for (const auto& path : list_checkpoints(folder.path())) names.push_back(path.filename().string());
  EXPECT_EQ(names, (std::vector<std::string>{"step-100000000", "step-00000010", "step-00000010.replaced-ab",
                                             "step-00000002"}));
  EXPECT_TRUE(list_checkpoints(folder.path() / "nowhere").empty());
}

TEST(FolderName, OfOneStepTheOneMadeLastIsTheNewest) {
  test::TemporaryFolder folder;
  for (const auto& [name, created] : {std::pair("step-00000007-before", "2026-11-20T09:00:00.000Z"),
                                      std::pair("step-00000007", "2026-11-20T09:00:05.000Z"),
                                      std::pair("step-00000007-a", "2026-11-20T09:00:01.000Z")}) {
    std::filesystem::create_directory(folder.path() / name);
    std::ofstream(folder.path() / name / "manifest.json") << "{\"created\": \"" << created << "\"}";
  }
  std::vector<std::string> names;
  for (const auto& path : list_checkpoints(folder.path())) names.push_back(path.filename().string());
  EXPECT_EQ(names, (std::vector<std::string>{"step-00000007", "step-00000007-a", "step-00000007-before"}));
}

TEST(FolderName, Tags) {
  for (const char* good : {"a", "before-spike", "V_2", "0"}) EXPECT_TRUE(is_tag(good)) << good;
  for (const char* bad : {"", ".", "a.b", "a/b", "a b", "ü", "a\n"}) EXPECT_FALSE(is_tag(bad)) << bad;
  EXPECT_TRUE(is_tag(std::string(64, 'x')));
  EXPECT_FALSE(is_tag(std::string(65, 'x')));
}

class NewestCheckpoint : public testing::Test {
 protected:
  /// A checkpoint as a save leaves it, but for its tensors. `created`: "" for one without a manifest.
  void save(const std::string& branch, const std::string& name, const std::string& created, int start = 1) {
    const auto folder = branch_folder(run_.path(), branch) / name;
    std::filesystem::create_directories(folder);
    if (!created.empty())
      std::ofstream(folder / kManifestName) << to_line({{"created", created}, {"start", start}});
  }

  std::string newest(const IsGood& is_good = has_manifest) {
    const auto path = newest_checkpoint(run_.path(), is_good);
    return path.empty() ? "" : path.parent_path().filename().string() + "/" + path.filename().string();
  }

  test::TemporaryFolder run_;
};

TEST_F(NewestCheckpoint, OfTheBranchThatWasSavedIntoLast) {
  EXPECT_EQ(newest(), "");
  save("main", "step-00000300", "2026-11-20T09:00:03.000Z");
  save("main", "step-00000100", "2026-11-20T09:00:01.000Z");
  EXPECT_EQ(newest(), "main/step-00000300");
  save("from-100", "step-00000150", "2026-11-20T09:00:04.000Z");
  EXPECT_EQ(newest(), "from-100/step-00000150");
  EXPECT_EQ(newest_in(branch_folder(run_.path())).filename(), "step-00000300");
  EXPECT_TRUE(newest_in(branch_folder(run_.path(), "nowhere")).empty());
}

/// The host that leads now may be behind the one that led before.
TEST_F(NewestCheckpoint, OfTheNewestStartWhateverTheClocksSay) {
  save("main", "step-00000300", "2026-11-20T09:10:00.000Z", 1);
  save("from-100", "step-00000100", "2026-11-20T09:01:00.000Z", 2);
  EXPECT_EQ(newest(), "from-100/step-00000100");
}

TEST_F(NewestCheckpoint, FoldersThatCantBeReadAreAnError) {
  EXPECT_TRUE(can_list_checkpoints(run_.path())) << "there are none";
  save("main", "step-00000300", "2026-11-20T09:00:03.000Z");
  EXPECT_TRUE(can_list_checkpoints(run_.path()));
  std::ofstream(checkpoints_folder(run_.path()) / "README") << "somebody's own";
  EXPECT_TRUE(can_list_checkpoints(run_.path()));
  std::filesystem::create_symlink("/no/such/disk", branch_folder(run_.path(), "from-100"));
  EXPECT_THAT(can_list_checkpoints(run_.path()).error().message,
              testing::HasSubstr("from-100: No such file"));
  std::filesystem::remove_all(checkpoints_folder(run_.path()));
  std::filesystem::create_symlink("/no/such/disk", checkpoints_folder(run_.path()));
  EXPECT_FALSE(can_list_checkpoints(run_.path()));
}

TEST_F(NewestCheckpoint, WithoutAManifestItIsNone) {
  save("main", "step-00000300", "2026-11-20T09:00:03.000Z");
  save("main", "step-00000400", "");
  save("main", "step-00000500.tmp-0123456789ab", "2026-11-20T09:00:05.000Z");
  EXPECT_EQ(newest(), "main/step-00000300");
}

TEST_F(NewestCheckpoint, WhatIsNotGoodIsPassedOver) {
  save("main", "step-00000300", "2026-11-20T09:00:03.000Z");
  save("from-100", "step-00000150", "2026-11-20T09:00:04.000Z");
  save("from-100", "step-00000200", "2026-11-20T09:00:05.000Z");
  std::vector<std::string> asked;
  const auto only_main = [&](const std::filesystem::path& path) {
    asked.push_back(path.filename().string());
    return path.parent_path().filename() == "main";
  };
  EXPECT_EQ(newest(only_main), "main/step-00000300");
  EXPECT_EQ(asked, (std::vector<std::string>{"step-00000200", "step-00000150", "step-00000300"}));
}

}  // namespace
}  // namespace footplate
