#include "console/host/automation/rules_file.h"

#include <gtest/gtest.h>

#include <fstream>

#include "tests/unit/console/fake_rank0.h"

namespace footplate::host {
namespace {

TEST(RulesFile, IsReadAsItWasWritten) {
  const test::TemporaryFolder folder;
  KeptRules kept;
  kept.started = "2026-11-20T19:29:35Z";
  kept.begun = "2026-11-19T08:00:00Z";
  kept.next_chunk = 4;
  kept.next_rule = 9;
  kept.jobs = {{"night", {{"state", "done"}}}};
  kept.chunks = Json::array({{{"id", 3}, {"code", "on('log', f)"}}});
  kept.rules = Json::array({{{"rule", 8}}});
  ASSERT_TRUE(kept.write(folder.path() / "rules.json", /*durable=*/true));
  const KeptRules read = KeptRules::read(folder.path() / "rules.json");
  EXPECT_EQ(read.started, kept.started);
  EXPECT_EQ(read.begun, kept.begun);
  EXPECT_EQ(read.next_chunk, 4);
  EXPECT_EQ(read.next_rule, 9);
  EXPECT_EQ(read.jobs, kept.jobs);
  EXPECT_EQ(read.chunks, kept.chunks);
  EXPECT_EQ(read.rules, kept.rules);
}

TEST(RulesFile, OneThatIsMissingOrCutShortIsEmpty) {
  const test::TemporaryFolder folder;
  EXPECT_EQ(KeptRules::read(folder.path() / "rules.json").next_rule, 1);
  std::ofstream(folder.path() / "rules.json") << R"({"version":1,"next_rule":7)";
  EXPECT_EQ(KeptRules::read(folder.path() / "rules.json").next_rule, 1);
}

TEST(RulesFile, AnErrorNamesTheFileAndLeavesTheOldOne) {
  const test::TemporaryFolder folder;
  const auto written = KeptRules().write(folder.path() / "no" / "rules.json", /*durable=*/false);
  ASSERT_FALSE(written);
  EXPECT_NE(written.error().message.find("no/rules.json"), std::string::npos);
}

}  // namespace
}  // namespace footplate::host
