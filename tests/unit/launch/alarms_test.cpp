#include "console/launch/supervise/alarms.h"

#include <gmock/gmock.h>

#include "tests/unit/run_files/folder_fixture.h"

namespace footplate {
namespace {

using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

class AlarmsTest : public test::FolderTest {
 protected:
  void happens(EventData data) {
    Event event;
    event.time = "2026-11-25T18:00:00Z";
    event.data = std::move(data);
    std::ofstream(folder_ / "events.jsonl", std::ios::app) << to_line(to_json(event));
  }
  void warns(WarningKind kind, const std::string& text, const std::string& verdict = "") {
    Warning warning;
    warning.kind = kind;
    warning.text = text;
    warning.verdict = verdict;
    happens(std::move(warning));
  }
  void rank_is(RankChangeKind state, int rank) {
    RankChange change;
    change.state = state;
    change.rank = rank;
    change.text = "rank " + std::to_string(rank) + " is silent";
    happens(std::move(change));
  }
  /// "kind: text" of what is told now.
  std::vector<std::string> told() {
    std::vector<std::string> all;
    for (const Notice& notice : alarms_.take(now_)) {
      EXPECT_EQ(notice.event, "warning");
      all.push_back(notice.kind + ": " + notice.text);
    }
    return all;
  }

  Alarms::Clock::time_point now_{seconds(1000)};
  Alarms alarms_{folder_, "r"};
};

TEST_F(AlarmsTest, TellWhatNeedsAPersonAndNothingElse) {
  warns(WarningKind::state_hash, "states differ");
  warns(WarningKind::advice, "a longer deadline");
  warns(WarningKind::checkpoint, "no checkpoint: No space left on device");
  EXPECT_THAT(told(), ElementsAre("state_hash: r: states differ",
                                  "checkpoint: r: no checkpoint: No space left on device"));
  warns(WarningKind::collective, "it waits for rank 3", "missing");
  EXPECT_THAT(told(), ElementsAre("collective: r: it waits for rank 3"));
  EXPECT_THAT(told(), IsEmpty());
}

TEST_F(AlarmsTest, ACollectiveThatAllAreInOrThatHasEndedNeedsNobody) {
  warns(WarningKind::collective, "rank 2 came last", "slow");
  warns(WarningKind::collective, "it has ended", "over");
  EXPECT_THAT(told(), IsEmpty());
}

TEST_F(AlarmsTest, EachKindOnceAMinute) {
  warns(WarningKind::nonfinite, "first");
  warns(WarningKind::nonfinite, "second");
  warns(WarningKind::corpus, "another");
  EXPECT_THAT(told(), ElementsAre("nonfinite: r: first", "corpus: r: another"));
  now_ += seconds(59);
  warns(WarningKind::nonfinite, "third");
  EXPECT_THAT(told(), IsEmpty());
  now_ += seconds(1);
  warns(WarningKind::nonfinite, "fourth");
  EXPECT_THAT(told(), ElementsAre("nonfinite: r: fourth"));
}

TEST_F(AlarmsTest, AnEvaluationThatFails) {
  EvaluationResult result;
  result.step = 20;
  happens(result);
  result.failed = true;
  result.reason = "rank 1 didn't come";
  happens(result);
  const auto notices = alarms_.take(now_);
  ASSERT_EQ(notices.size(), 1U);
  EXPECT_EQ(notices[0].kind, "evaluation");
  EXPECT_EQ(notices[0].text, "r: no evaluation: rank 1 didn't come");
  EXPECT_EQ(notices[0].step, 20);
}

TEST_F(AlarmsTest, ARankThatIsSilentForAMinute) {
  rank_is(RankChangeKind::stalled, 1);
  rank_is(RankChangeKind::stalled, 2);
  EXPECT_THAT(told(), IsEmpty());
  now_ += seconds(30);
  rank_is(RankChangeKind::back, 2);
  EXPECT_THAT(told(), IsEmpty());
  now_ += seconds(30);
  EXPECT_THAT(told(), ElementsAre("silent: r: rank 1 is silent"));
  now_ += seconds(600);
  EXPECT_THAT(told(), IsEmpty()) << "said once";
}

TEST_F(AlarmsTest, WhatWasBeforeIsNotToldAgain) {
  warns(WarningKind::script, "of an earlier start");
  Alarms later(folder_, "r");
  EXPECT_THAT(later.take(now_), IsEmpty());
}

}  // namespace
}  // namespace footplate
