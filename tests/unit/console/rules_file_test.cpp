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
  kept.jobs["night"].state = JobState::done;
  KeptChunk& chunk = kept.chunks.emplace_back();
  chunk.id = 3;
  chunk.code = "on('log', f)";
  chunk.role = Role::operate;
  KeptRule& rule = kept.rules.emplace_back();
  rule.status.rule = 8;
  rule.status.state = RuleState::off;
  rule.spec.kind = RuleKind::on;
  rule.spec.event = RuleEvent::log;
  rule.chunk = 3;
  ASSERT_TRUE(kept.write(folder.path() / "rules.json", /*durable=*/true));
  const auto read = KeptRules::read(folder.path() / "rules.json");
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(to_json(*read), to_json(kept));
  EXPECT_EQ(read->begun, "2026-11-19T08:00:00Z");
  EXPECT_EQ(read->next_rule, 9);
  EXPECT_EQ(read->jobs.at("night").state, JobState::done);
  EXPECT_EQ(read->chunks.at(0).role, Role::operate);
  EXPECT_EQ(read->rules.at(0).status.state, RuleState::off);
  EXPECT_EQ(read->rules.at(0).spec.event, RuleEvent::log);
}

TEST(RulesFile, AWrongTypeIsNamed) {
  const test::TemporaryFolder folder;
  std::ofstream(folder.path() / "rules.json") << R"({"version":1,"chunks":[{"id":"three"}]})";
  const auto read = KeptRules::read(folder.path() / "rules.json");
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().message, "field 'chunks' field 'id' has to be a whole number");
}

TEST(RulesFile, OneThatIsMissingOrCutShortIsEmpty) {
  const test::TemporaryFolder folder;
  EXPECT_EQ(KeptRules::read(folder.path() / "rules.json").value().next_rule, 1);
  std::ofstream(folder.path() / "rules.json") << R"({"version":1,"next_rule":7)";
  EXPECT_EQ(KeptRules::read(folder.path() / "rules.json").value().next_rule, 1);
}

TEST(RulesFile, AnErrorNamesTheFileAndLeavesTheOldOne) {
  const test::TemporaryFolder folder;
  const auto written = KeptRules().write(folder.path() / "no" / "rules.json", /*durable=*/false);
  ASSERT_FALSE(written);
  EXPECT_NE(written.error().message.find("no/rules.json"), std::string::npos);
}

}  // namespace
}  // namespace footplate::host
