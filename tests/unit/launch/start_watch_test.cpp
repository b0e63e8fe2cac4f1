#include "console/launch/supervise/start_watch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

#include "console/client/runs/run_record.h"
#include "protocol/host_name.h"
#include "run_files/file_names.h"
#include "run_files/json_file.h"

namespace footplate {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

RankStart at(int rank, int stage, const char* place, bool waits, char process = 'S') {
  Arrival arrival{.rank = rank, .pid = 100 + rank, .host = "n" + std::to_string(rank), .place = place};
  arrival.stage = stage;
  arrival.waits = waits;
  return {rank, arrival, process};
}

const std::string kWithin = " within 60 s (comm.init_timeout_s)";

TEST(StartWatchTest, NamesWhoIsBehind) {
  const auto text = explain_missing(
      {at(0, 2, "MPI's start", true), at(1, 1, "before MPI starts", false), at(2, 2, "MPI's start", true)},
      kWithin);
  EXPECT_THAT(
      text,
      HasSubstr("rank 1 of 3 has not arrived within 60 s (comm.init_timeout_s): host n1, pid 101, before "
                "MPI starts, its process sleeps; check: "));
}

TEST(StartWatchTest, NamesSeveralAndCountsMany) {
  std::vector<RankStart> ranks{at(0, 2, "MPI's start", true)};
  for (int rank = 1; rank < 30; ++rank) ranks.push_back(at(rank, 1, "before MPI starts", false));
  const auto text = explain_missing(ranks, kWithin);
  EXPECT_THAT(
      text,
      HasSubstr("ranks 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16 and 13 more of 30 have not"));
  EXPECT_THAT(text, AllOf(HasSubstr("; rank 4 host n4"), Not(HasSubstr("rank 5 host"))));
}

TEST(StartWatchTest, AdviceFollowsTheProcess) {
  const auto told = [](char process) {
    return explain_missing({at(0, 2, "MPI's start", true), at(1, 1, "before MPI starts", false, process)},
                           kWithin);
  };
  EXPECT_THAT(told('T'), HasSubstr("SIGSTOP"));
  EXPECT_THAT(told('D'), HasSubstr("network file systems on n1"));
  EXPECT_THAT(told('R'), HasSubstr("load on n1"));
  EXPECT_THAT(told('-'), AllOf(HasSubstr("has ended before the first step"), HasSubstr("out-of-memory")));
}

TEST(StartWatchTest, ProcessThatNeverBegan) {
  const auto text =
      explain_missing({at(0, 2, "MPI's start", true), RankStart{.rank = 1, .arrival = {}}}, kWithin);
  EXPECT_THAT(text, AllOf(HasSubstr("rank 1 of 2"), HasSubstr("has not begun"), HasSubstr("launcher.log")));
}

TEST(StartWatchTest, AllInOneWaitBlamesTheNetwork) {
  const auto text = explain_missing({at(0, 2, "MPI's start", true), at(1, 2, "MPI's start", true)}, kWithin);
  EXPECT_THAT(text, AllOf(HasSubstr("all 2 ranks are in MPI's start"), HasSubstr("firewall")));
}

TEST(StartWatchTest, AllThatHangEachByItselfAreNamed) {
  const auto text =
      explain_missing({at(0, 1, "before MPI starts", false), at(1, 1, "before MPI starts", false)}, kWithin);
  EXPECT_THAT(text, AllOf(HasSubstr("ranks 0, 1 of 2 have not arrived within 60 s"), HasSubstr("; check: ")));
}

/// A start with files in a folder of its own, and a clock that the test moves.
class Watched : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = fs::temp_directory_path() / "fp-start-XXXXXX";
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    folder_ = name;
    folders_.temporary = folder_;
    record("starting");
  }
  void TearDown() override { fs::remove_all(folder_); }

  void record(const char* state) { ASSERT_TRUE(write_json_file(folder_ / "run.json", {{"state", state}})); }
  void arrives(int rank, int stage, bool waits, bool has_met, std::int64_t pid = ::getpid()) const {
    Arrival arrival{.rank = rank, .pid = pid, .host = host_name(), .place = "somewhere"};
    arrival.stage = stage;
    arrival.waits = waits;
    arrival.has_met = has_met;
    std::ofstream(folder_ / arrival_file(rank), std::ios::app) << to_line(arrival.to_json());
  }

  fs::path folder_;
  PrivateFolders folders_;
  const StartWatch::Clock::time_point begin_ = StartWatch::Clock::now();
};

TEST_F(Watched, BeforeTheMeetingTheLaunchCounts) {
  StartWatch watch(folder_, folders_, 2, 60);
  arrives(0, 2, true, false);
  arrives(1, 1, false, false);
  EXPECT_FALSE(watch.look(begin_ + 59s));
  const auto why = watch.look(begin_ + 62s);
  ASSERT_TRUE(why);
  EXPECT_THAT(*why, HasSubstr("rank 1 of 2 has not arrived within 60 s"));
}

TEST_F(Watched, ARankThatEndsOnceAllWereReadyIsNoneOfTheStart) {
  const StartWatch watch(folder_, folders_, 1, 60);
  arrives(0, 3, false, true);
  ASSERT_TRUE(watch.lost_rank());
  EXPECT_THAT(*watch.lost_rank(), HasSubstr("has ended before the first step"));
  record("running");  // since look() was called last
  EXPECT_FALSE(watch.lost_rank());
}

TEST_F(Watched, LongWorkOfAllIsNoWait) {
  StartWatch watch(folder_, folders_, 2, 60);
  for (const int rank : {0, 1}) arrives(rank, 3, false, true);
  EXPECT_FALSE(watch.look(begin_ + 1s));
  EXPECT_FALSE(watch.look(begin_ + 10'000s));
}

TEST_F(Watched, AfterTheMeetingTheWaitCounts) {
  StartWatch watch(folder_, folders_, 2, 60);
  for (const int rank : {0, 1}) arrives(rank, 3, false, true);
  EXPECT_FALSE(watch.look(begin_ + 1000s));
  arrives(0, 4, true, true);
  EXPECT_FALSE(watch.look(begin_ + 1001s));
  EXPECT_FALSE(watch.look(begin_ + 1050s));
  const auto why = watch.look(begin_ + 1062s);
  ASSERT_TRUE(why);
  EXPECT_THAT(*why, HasSubstr("rank 1 of 2"));
}

TEST_F(Watched, ALongStartIsToldOnce) {
  StartWatch watch(folder_, folders_, 2, 60);
  arrives(0, 2, true, false);
  arrives(1, 1, false, false);
  EXPECT_EQ(watch.patience(begin_ + 10s), "");
  EXPECT_THAT(watch.patience(begin_ + 20s),
              AllOf(HasSubstr("waiting for rank 1: host"), HasSubstr("within 60 s")));
  EXPECT_EQ(watch.patience(begin_ + 30s), "");
}

TEST_F(Watched, ALongStartIsToldOnceSomebodyIsBehind) {
  StartWatch watch(folder_, folders_, 2, 60);
  for (const int rank : {0, 1}) arrives(rank, 3, false, true);
  EXPECT_EQ(watch.patience(begin_ + 20s), "");
  arrives(1, 4, false, true);
  EXPECT_THAT(watch.patience(begin_ + 40s),
              AllOf(HasSubstr("waiting for rank 0: host"), Not(HasSubstr("within 60 s"))))
      << "nobody waits for it in a way that is bounded";
  EXPECT_EQ(watch.patience(begin_ + 50s), "");
}

TEST_F(Watched, WhereNoProcessBeginsTheHostsDontReachEachOther) {
  StartWatch watch(folder_, folders_, 2, 60);
  EXPECT_THAT(watch.patience(begin_ + 20s), AllOf(HasSubstr("no process of the 2 ranks has begun;"),
                                                  HasSubstr("comm.ports"), HasSubstr("within 60 s")));
  EXPECT_THAT(watch.look(begin_ + 100s),
              ::testing::Optional(HasSubstr(
                  "no process of the 2 ranks has begun within 60 s (comm.init_timeout_s); check: ")));
}

TEST_F(Watched, OnceReadyNothingIsBounded) {
  StartWatch watch(folder_, folders_, 2, 60);
  arrives(0, 2, true, false);
  record("running");
  EXPECT_FALSE(watch.look(begin_ + 1s));
  record("starting");
  EXPECT_FALSE(watch.look(begin_ + 1000s));
}

TEST_F(Watched, LostRankIsToldAfterTheOthersLastWords) {
  StartWatch watch(folder_, folders_, 2, 60);
  arrives(0, 2, true, false);
  arrives(1, 1, false, false, /*pid=*/999'999'999);  // above the largest there can be
  EXPECT_FALSE(watch.look(begin_ + 1s));
  const auto why = watch.look(begin_ + 5s);
  ASSERT_TRUE(why);
  EXPECT_THAT(*why, HasSubstr("rank 1 of 2 has ended before the first step"));
}

TEST_F(Watched, HalfALineAndRubbishAreNoArrival) {
  std::ofstream(folder_ / arrival_file(0)) << "{\"rank\": 0, \"pid\"";
  std::ofstream(folder_ / arrival_file(1)) << "[1, 2]\n";
  for (const auto& rank : read_starts({folder_}, 2)) EXPECT_FALSE(rank.arrival) << rank.rank;
}

TEST_F(Watched, ARankOfAnotherHostIsSeenInTheRunDirectory) {
  StartWatch watch(folder_, folders_, 2, 60);
  const fs::path own = folder_;
  fs::create_directories(own / kStartNotesFolder);
  arrives(0, 4, true, true);
  folder_ = own / kStartNotesFolder;
  arrives(1, 3, false, true);
  folder_ = own;
  EXPECT_FALSE(watch.look(begin_ + 1000s));  // they have met
  const auto why = watch.look(begin_ + 1062s);
  ASSERT_TRUE(why);
  EXPECT_THAT(*why, AllOf(HasSubstr("rank 1 of 2"), HasSubstr("has not arrived")));
}

}  // namespace
}  // namespace footplate
