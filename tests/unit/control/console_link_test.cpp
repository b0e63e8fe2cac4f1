#include "runtime/console_link/console_link.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <thread>

#include "tests/unit/control/sim_run.h"

namespace footplate::testing {
namespace {

using std::chrono::milliseconds;
using ::testing::HasSubstr;

class ConsoleLinkTest : public ::testing::Test {
 protected:
  ConsoleLinkTest() {
    std::string name = std::filesystem::temp_directory_path() / "footplate-link-XXXXXX";
    directory_ = ::mkdtemp(name.data());
    options_.ranks = 2;
    options_.step_time = milliseconds(1);
    options_.times.heartbeat = milliseconds(20);
    options_.console_program = FAKE_CONSOLE;
    options_.run_directory = directory_;
  }
  ~ConsoleLinkTest() override { std::filesystem::remove_all(directory_); }

  void plan(const std::string& word) { std::ofstream(directory_ / "fake.plan") << word; }

  /// What the n-th console was told, so far.
  std::vector<Json> told(int number) {
    std::ifstream file(directory_ / ("fake-" + std::to_string(number) + ".jsonl"));
    std::vector<Json> lines;
    for (std::string line; std::getline(file, line);)
      if (auto json = parse_line(line)) lines.push_back(*std::move(json));
    return lines;
  }

  /// Waits until the n-th console was told a line of this type that fits.
  Json wait_until_told(
      int number, const std::string& type,
      const std::function<bool(const Json&)>& fits = [](const Json&) { return true; }) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    while (std::chrono::steady_clock::now() < deadline) {
      for (const Json& line : told(number))
        if (line.value("type", "") == type && fits(line)) return line;
      std::this_thread::sleep_for(milliseconds(5));
    }
    return {};
  }

  std::filesystem::path directory_;
  SimRun::Options options_;
};

TEST_F(ConsoleLinkTest, StartsItInAGroupOfItsOwnWithOneDescriptor) {
  SimRun run(options_);
  const Json started = wait_until_told(1, "started");
  EXPECT_EQ(started["fds"], "0 1 2 3 ");
  EXPECT_EQ(started["group"], started["pid"]);
  EXPECT_EQ(started["session"], ::getsid(0)) << "one of its own could be starved by busy ranks";
  EXPECT_EQ(started["part"], "console");
  EXPECT_EQ(run.wait_for("console", [](const Json&) { return true; })["pid"], started["pid"]);
  const Json hello = wait_until_told(1, "hello");
  EXPECT_EQ(hello["run"]["name"], "sim");
  EXPECT_EQ(hello["run"]["world_size"], 2);
  EXPECT_EQ(hello["settings"]["log.every"]["value"], 10);
  EXPECT_TRUE(hello["status"].contains("state"));
  const auto running = [](const Json& line) { return line["status"]["state"] == "running"; };
  EXPECT_FALSE(wait_until_told(1, "status", running).is_null());
  std::string log;
  std::getline(std::ifstream(directory_ / "log" / "console.log"), log);
  EXPECT_EQ(log, "fake console 1");
}

TEST_F(ConsoleLinkTest, TellsTheStacksOfTheRanksItAsksFor) {
  SimRun run(options_);
  EXPECT_FALSE(wait_until_told(1, "hello").is_null());
  run.send({{"type", "ranks"}, {"query", "stacks"}});
  const Json all = wait_until_told(1, "ranks")["report"];
  EXPECT_TRUE(all["rank"].is_null());
  ASSERT_EQ(all["ranks"].size(), 2U);
  for (const Json& rank : all["ranks"]) {
    std::string text;
    for (const Json& thread : rank["threads"])
      if (thread["name"] == "control") text += thread["frames"].dump();
    EXPECT_THAT(text, HasSubstr("footplate::ControlLoop::"));
  }
  run.send({{"type", "ranks"}, {"query", "stacks"}, {"rank", 1}});
  const auto of_one = [](const Json& line) { return line["report"]["rank"] == 1; };
  const Json one = wait_until_told(1, "ranks", of_one)["report"];
  ASSERT_EQ(one["ranks"].size(), 1U);
  EXPECT_EQ(one["ranks"][0]["rank"], 1);
  run.stop();
}

TEST_F(ConsoleLinkTest, TakesItsOrdersAndTellsTheirReports) {
  plan("order");
  SimRun run(options_);
  const auto applied = [](const Json& line) { return line["state"] == "applied"; };
  EXPECT_EQ(wait_until_told(1, "order", applied)["ref"], "f1");
  EXPECT_FALSE(
      wait_until_told(1, "call", [](const Json& line) { return line["state"] == "done"; }).is_null());
  run.control(0).gate().publish(from_json<EvaluationResult>({{"loss", 1.5}}));
  EXPECT_EQ(wait_until_told(1, "event")["data"]["loss"], 1.5);
  int settings_at = 0, applied_at = 0, at = 0;
  for (const Json& line : told(1)) {
    ++at;
    if (line["type"] == "settings") settings_at = at;
    if (line["type"] == "order" && line["state"] == "applied") applied_at = at;
  }
  EXPECT_GT(settings_at, 0);
  EXPECT_LT(settings_at, applied_at) << "settings come before the report";
}

TEST_F(ConsoleLinkTest, ReplacesADeadOneAndTellsItTheReports) {
  SimRun run(options_);
  run.order("a", {{"log.every", 4}});
  EXPECT_EQ(run.wait_for_outcome("a")["state"], "applied");
  ::kill(wait_until_told(1, "started")["pid"].get<pid_t>(), SIGKILL);
  const Json hello = wait_until_told(2, "hello");
  ASSERT_EQ(hello["reports"].size(), 1U);
  EXPECT_EQ(hello["reports"][0]["ref"], "a");
  EXPECT_EQ(hello["settings"]["log.every"]["value"], 4);
  EXPECT_FALSE(run.wait_for("warn", [](const Json& data) { return data["kind"] == "console"; }).is_null());
}

TEST_F(ConsoleLinkTest, StartsTheNextOneWhileTheDiskHangs) {
  SimRun run(options_);
  const Json first = wait_until_told(1, "started");
  // Opening a pipe that nobody reads never comes back either.
  const std::filesystem::path log = directory_ / "log" / "console.log";
  std::filesystem::remove(log);
  ASSERT_EQ(::mkfifo(log.c_str(), 0600), 0);
  ::kill(first["pid"].get<pid_t>(), SIGKILL);
  EXPECT_FALSE(wait_until_told(2, "hello").is_null());
  run.order("a", {{"log.every", 4}});
  EXPECT_EQ(run.wait_for_outcome("a")["state"], "applied");
}

TEST_F(ConsoleLinkTest, ReplacesOneThatSendsNonsense) {
  plan("junk");
  SimRun run(options_);
  EXPECT_FALSE(wait_until_told(2, "hello").is_null());
}

TEST_F(ConsoleLinkTest, GivesUpForAMinuteAfterFiveAndTrainingGoesOn) {
  plan("die");
  options_.times.console_survives = std::chrono::minutes(1);  // however slowly they die here
  SimRun run(options_);
  EXPECT_FALSE(wait_until_told(5, "hello").is_null());
  std::this_thread::sleep_for(milliseconds(300));
  EXPECT_TRUE(told(6).empty());
  run.order("a", {{"log.every", 4}});
  EXPECT_EQ(run.wait_for_outcome("a")["state"], "applied");
}

TEST_F(ConsoleLinkTest, ThatCannotBeStartedIsSaidAndTrainingGoesOn) {
  options_.console_program = directory_ / "missing";
  SimRun run(options_);
  const Json warning = run.wait_for("warn", [](const Json& data) { return data["kind"] == "console"; });
  EXPECT_THAT(warning["text"].get<std::string>(), HasSubstr("can't start the console"));
  run.order("a", {{"log.every", 4}});
  EXPECT_EQ(run.wait_for_outcome("a")["state"], "applied");
}

TEST_F(ConsoleLinkTest, ADeafOneHoldsNothingUp) {
  plan("deaf");
  SimRun run(options_);
  ASSERT_FALSE(wait_until_told(1, "hello").is_null());
  const std::string text(1000, 'x');
  for (int i = 0; i < 20000; ++i) run.control(0).gate().publish(LoggedMetrics{{{"text", text}}});
  run.order("a", {{"log.every", 4}});
  EXPECT_EQ(run.wait_for_outcome("a")["state"], "applied");
}

TEST_F(ConsoleLinkTest, AStoppedOneIsGoneAfterTheEnd) {
  pid_t pid = 0;
  {
    SimRun run(options_);
    pid = wait_until_told(1, "started")["pid"].get<pid_t>();
    ASSERT_EQ(::kill(pid, SIGSTOP), 0);
    run.stop();
  }
  EXPECT_EQ(::kill(pid, 0), -1) << "the console outlives its rank";
}

TEST_F(ConsoleLinkTest, IsToldTheEndAndWaitedFor) {
  {
    SimRun run(options_);
    ASSERT_FALSE(wait_until_told(1, "hello").is_null());
  }
  EXPECT_EQ(told(1).back()["type"], "end");
  EXPECT_EQ(told(1).back()["result"]["code"], 0);
}

}  // namespace
}  // namespace footplate::testing
