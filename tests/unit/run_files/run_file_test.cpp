#include "run_files/run_file.h"

#include "run_files/json_file.h"
#include "tests/unit/run_files/folder_fixture.h"

namespace footplate {
namespace {

class RunFileTest : public test::FolderTest {};

TEST_F(RunFileTest, IsReadAsItWasWritten) {
  RunFile run;
  run.id = "0011aabb";
  run.name = "kjv-3";
  run.state = RunState::starting;
  run.socket = "/tmp/footplate-1/0011aabb.sock";
  run.world_size = 4;
  run.ranks = {{2, "n7", 42}};
  run.launcher_started = std::uint64_t{1} << 60;
  ASSERT_TRUE(write_json_file(folder_ / "run.json", {{"of a later version", 1}, {"step", 900}}));
  ASSERT_TRUE(update_run_file(folder_, run));
  const auto read = read_run_file(folder_);
  ASSERT_TRUE(read);
  EXPECT_EQ(to_json(*read), to_json(run));
  EXPECT_EQ((*read_json_file(folder_ / "run.json"))["of a later version"], 1);

  ASSERT_TRUE(record_end(folder_, 700));
  EXPECT_EQ(read_run_file(folder_)->state, RunState::ended);
  EXPECT_EQ(read_run_file(folder_)->step, 700);
  EXPECT_EQ(read_run_file(folder_)->name, "kjv-3");
}

TEST_F(RunFileTest, AFieldOfAnotherTypeHidesNothingElse) {
  write("run.json",
        R"({"name": 3, "state": "of a later version", "world_size": "x", "launcher_pid": -1e30, "host": "n1",
            "ranks": [5, {"pid": "x", "rank": 1}, {"pid": 77}], "step": 12})");
  const auto run = read_run_file(folder_);
  ASSERT_TRUE(run);
  EXPECT_EQ(run->name, "");
  EXPECT_FALSE(run->state);
  EXPECT_FALSE(run->world_size);
  EXPECT_EQ(run->launcher_pid, 0);
  EXPECT_EQ(run->host, "n1");
  ASSERT_EQ(run->ranks.size(), 3U);
  EXPECT_EQ(run->ranks[1].rank, 1);
  EXPECT_EQ(run->ranks[2].pid, 77);
  EXPECT_EQ(run->step, 12);
}

TEST_F(RunFileTest, WhatIsNoObjectIsNone) {
  EXPECT_EQ(read_run_file(folder_).error().kind, ErrorKind::failed);
  write("run.json", "[1]");
  EXPECT_EQ(read_run_file(folder_).error().kind, ErrorKind::usage);
}

}  // namespace
}  // namespace footplate
