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
  std::vector<std::string> lost;
  const KeptRules read = KeptRules::read(folder.path() / "rules.json", lost);
  EXPECT_TRUE(lost.empty()) << lost.front();
  EXPECT_EQ(to_json(read), to_json(kept));
  EXPECT_EQ(read.begun, "2026-11-19T08:00:00Z");
  EXPECT_EQ(read.next_rule, 9);
  EXPECT_EQ(read.jobs.at("night").state, JobState::done);
  EXPECT_EQ(read.chunks.at(0).role, Role::operate);
  EXPECT_EQ(read.rules.at(0).status.state, RuleState::off);
  EXPECT_EQ(read.rules.at(0).spec.event, RuleEvent::log);
}

TEST(RulesFile, WhatCanNotBeReadIsNamedAndTheRestIsKept) {
  const test::TemporaryFolder folder;
  std::ofstream(folder.path() / "rules.json") << R"json(
    {"version": 1, "started": "now", "next_chunk": 2, "next_rule": 4,
     "chunks": [{"id": "three"}, {"id": 5, "code": "on('log', f)"}],
     "jobs": {"night": {"state": "asleep"}, "day": {"state": "done"}},
     "rules": [
       {"rule": 7, "text": "after(9, f)", "state": "on", "chunk": 3, "spec": {"kind": "after", "steps": 9}},
       {"rule": 8, "text": "on('log', f)", "state": "on", "chunk": 5, "spec": {"kind": "on", "event": "log"}},
       {"rule": 9, "state": "sleeping"}]}
  )json";
  std::vector<std::string> lost;
  const KeptRules read = KeptRules::read(folder.path() / "rules.json", lost);
  const std::vector<std::string> expected = {
      "chunk 1 of 2: field 'id' has to be a whole number",
      "rule 3 of 3: field 'state' has to be one of on, done, off",
      "job night: field 'state' has to be one of running, rules, done, failed, stopped",
      "after(9, f): the chunk that registered it is lost"};
  EXPECT_EQ(lost, expected);
  EXPECT_EQ(read.started, "now");
  ASSERT_EQ(read.rules.size(), 1U);
  EXPECT_EQ(read.rules.front().status.rule, 8);
  EXPECT_EQ(read.chunks.size(), 1U);
  EXPECT_EQ(read.jobs.count("day"), 1U);
  EXPECT_EQ(read.next_chunk, 6) << "a new chunk must not get the number of one that is there";
  EXPECT_EQ(read.next_rule, 9);
}

TEST(RulesFile, AListThatIsNoneIsNamed) {
  const test::TemporaryFolder folder;
  std::ofstream(folder.path() / "rules.json") << R"({"version":1,"rules":3,"jobs":[],"next_rule":"x"})";
  std::vector<std::string> lost;
  EXPECT_EQ(KeptRules::read(folder.path() / "rules.json", lost).next_rule, 1);
  EXPECT_EQ(lost.size(), 3U);
}

TEST(RulesFile, OneThatIsMissingIsEmptyAndOneThatIsCutShortIsToldOf) {
  const test::TemporaryFolder folder;
  std::vector<std::string> lost;
  EXPECT_EQ(KeptRules::read(folder.path() / "rules.json", lost).next_rule, 1);
  EXPECT_TRUE(lost.empty());
  for (const char* damaged : {R"({"version":1,"next_rule":7)", ""}) {
    std::ofstream(folder.path() / "rules.json") << damaged;
    lost.clear();
    EXPECT_EQ(KeptRules::read(folder.path() / "rules.json", lost).next_rule, 1);
    EXPECT_EQ(lost.size(), 1U) << damaged;
  }
}

TEST(RulesFile, AnErrorNamesTheFileAndLeavesTheOldOne) {
  const test::TemporaryFolder folder;
  const auto written = KeptRules().write(folder.path() / "no" / "rules.json", /*durable=*/false);
  ASSERT_FALSE(written);
  EXPECT_NE(written.error().message.find("no/rules.json"), std::string::npos);
}

}  // namespace
}  // namespace footplate::host
