#include "runtime/watch/ledger_dumps.h"

#include <gmock/gmock.h>

#include <fstream>
#include <string>
#include <vector>

#include "protocol/json.h"
#include "tests/unit/run_files/folder_fixture.h"

namespace footplate {
namespace {

using ::testing::HasSubstr;

class LedgerDumpsTest : public test::FolderTest {
 protected:
  static LedgerEntry sums(std::int64_t elements, std::int64_t step) {
    LedgerEntry made = entry(Collective::all_reduce, {nullptr, elements, DataType::float64}, "eval sums");
    made.phase = Phase::evaluation;
    made.step = step;
    return made;
  }
  static std::vector<Json> lines_of(const std::string& path) {
    std::ifstream file(path);
    std::vector<Json> lines;
    for (std::string line; std::getline(file, line);) lines.push_back(Json::parse(line));
    return lines;
  }
  /// One more file, once those before are there.
  static void wait_until_written(LedgerDumps& dumps) {
    while (!dumps.dump(0, "test").error.empty()) {
    }
  }
  /// Names in the folder of the files.
  std::vector<std::string> files() const {
    std::vector<std::string> names;
    for (const auto& file : std::filesystem::directory_iterator(folder_ / "ledgers"))
      names.push_back(file.path().filename());
    return names;
  }

  Ledger ledger_;
  LedgerDumps dumps_{ledger_, folder_, "n1"};
};

TEST_F(LedgerDumpsTest, HaveALineForEachOperation) {
  const auto first = ledger_.enqueue(sums(4, 20));
  ledger_.start(first);
  ledger_.finish(first);
  ledger_.start(ledger_.enqueue(sums(7, 21)));
  ledger_.enqueue(sums(1, 21));
  const DumpedLedger dumped = dumps_.dump(2, "comm.dump()");
  EXPECT_EQ(dumped.error, "");
  EXPECT_EQ(dumped.rank, 2);
  EXPECT_EQ(dumped.operations, 3);
  EXPECT_EQ(dumped.path, (folder_ / "ledgers" / "rank-2-1.jsonl").string());
  const auto lines = lines_of(dumped.path);
  ASSERT_EQ(lines.size(), 4U);
  EXPECT_EQ(lines[0].at("rank"), 2);
  EXPECT_EQ(lines[0].at("host"), "n1");
  EXPECT_EQ(lines[0].at("why"), "comm.dump()");
  EXPECT_EQ(lines[0].at("newest"), 3);
  EXPECT_EQ(lines[1].at("state"), "finished");
  EXPECT_EQ(lines[1].at("kind"), "all_reduce");
  EXPECT_EQ(lines[1].at("name"), "eval sums");
  EXPECT_EQ(lines[1].at("type"), "float64");
  EXPECT_EQ(lines[1].at("phase"), "evaluation");
  EXPECT_EQ(lines[1].at("step"), 20);
  EXPECT_GE(lines[1].at("finished").get<double>(), lines[1].at("started").get<double>());
  EXPECT_NEAR(lines[1].at("started").get<double>(), lines[0].at("time").get<double>(), 60) << "Unix time";
  EXPECT_EQ(lines[2].at("state"), "running");
  EXPECT_EQ(lines[2].at("elements"), 7);
  EXPECT_TRUE(lines[2].at("finished").is_null());
  EXPECT_GE(lines[2].at("seconds").get<double>(), 0);
  EXPECT_EQ(lines[3].at("state"), "waiting");
  EXPECT_TRUE(lines[3].at("started").is_null());
  EXPECT_NE(lines[2].at("digest"), lines[3].at("digest"));
}

TEST_F(LedgerDumpsTest, HaveTheLastOperationsOfMany) {
  for (std::size_t i = 0; i < Ledger::kSize + 10; ++i) {
    const auto sequence = ledger_.enqueue(sums(4, 1));
    ledger_.start(sequence);
    ledger_.finish(sequence);
  }
  const DumpedLedger dumped = dumps_.dump(0, "test");
  EXPECT_EQ(dumped.operations, Ledger::kSize);
  EXPECT_EQ(lines_of(dumped.path).at(1).at("sequence"), 11);
}

TEST_F(LedgerDumpsTest, TheNewestFilesOfEachRankStay) {
  ledger_.enqueue(sums(4, 1));
  for (int i = 0; i < LedgerDumps::kMostFiles + 3; ++i) EXPECT_EQ(dumps_.dump(0, "test").error, "");
  dumps_.dump(10, "test");  // its files aren't rank 1's
  dumps_.dump(1, "test");
  auto names = files();
  EXPECT_EQ(names.size(), LedgerDumps::kMostFiles + 2);
  EXPECT_THAT(names, ::testing::Not(::testing::Contains("rank-0-3.jsonl")));
  for (const char* name : {"rank-0-4.jsonl", "rank-0-11.jsonl", "rank-10-1.jsonl", "rank-1-1.jsonl"})
    EXPECT_THAT(names, ::testing::Contains(name));
}

TEST_F(LedgerDumpsTest, AfterATimeoutOnceAMinute) {
  ledger_.start(ledger_.enqueue(sums(4, 1)));
  const LedgerDumps::Clock::time_point now{std::chrono::seconds(1000)};
  {
    LedgerDumps dumps(ledger_, folder_, "n1");
    dumps.dump_after_timeout(0, now);
  }  // which waits for the file
  EXPECT_THAT(files(), ::testing::ElementsAre("rank-0-1.jsonl"));
  {
    LedgerDumps dumps(ledger_, folder_, "n1");
    dumps.dump_after_timeout(0, now);
    wait_until_written(dumps);
    dumps.dump_after_timeout(0, now + std::chrono::seconds(59));
  }
  EXPECT_EQ(files().size(), 3U);
  {
    LedgerDumps dumps(ledger_, folder_, "n1");
    dumps.dump_after_timeout(0, now);
    wait_until_written(dumps);
    dumps.dump_after_timeout(0, now + std::chrono::seconds(60));
  }
  EXPECT_EQ(files().size(), 6U);
}

TEST_F(LedgerDumpsTest, SayWhereTheyCannotBeWritten) {
  write("ledgers", "a file in the folder's place");
  const DumpedLedger dumped = dumps_.dump(1, "test");
  EXPECT_EQ(dumped.path, "");
  EXPECT_THAT(dumped.error, HasSubstr("can't write"));
}

}  // namespace
}  // namespace footplate
