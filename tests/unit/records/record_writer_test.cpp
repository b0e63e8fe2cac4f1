#include "runtime/records/record_writer.h"

#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <limits>

#include "fixture.h"
#include "run_files/json_file.h"

namespace footplate {
namespace {

using test::json_lines;

class RecordWriterTest : public testing::Test {
 protected:
  std::unique_ptr<RecordWriter> open(int start = 1, int flush_every = 200,
                                     std::chrono::milliseconds longest_wait = std::chrono::seconds(1)) {
    RecordWriter::Options options;
    options.directory = folder_.path();
    options.start = start;
    options.flush_every = flush_every;
    options.longest_wait = longest_wait;
    auto writer = RecordWriter::open(std::move(options));
    EXPECT_TRUE(writer);
    return *std::move(writer);
  }
  std::filesystem::path metrics() const { return folder_.path() / "metrics.jsonl"; }
  std::filesystem::path events() const { return folder_.path() / "events.jsonl"; }
  test::TemporaryFolder folder_;
};

TEST_F(RecordWriterTest, MetricsCarryTheStartAndNanIsTagged) {
  open()->metrics({{"step", 1}, {"train/loss", number_to_json(std::numeric_limits<double>::quiet_NaN())}});
  open(2)->metrics({{"step", 1}, {"train/loss", 2.5}});
  const auto lines = json_lines(metrics());
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_EQ(lines[0], (Json{{"step", 1}, {"train/loss", "@nan"}, {"start", 1}}));
  EXPECT_EQ(lines[1]["start"], 2);
}

TEST_F(RecordWriterTest, EventsAreNumberedAcrossStarts) {
  for (int start = 1; start <= 3; ++start) {
    const auto writer = open(start);
    writer->event("run", {{"state", "running"}});
    writer->event("warn", {{"text", "x"}});
  }
  const auto lines = json_lines(events());
  ASSERT_EQ(lines.size(), 6u);
  for (std::size_t i = 0; i < lines.size(); ++i) EXPECT_EQ(lines[i]["sequence"], i + 1);
  EXPECT_EQ(lines[1]["topic"], "warn");
  EXPECT_EQ(lines[1]["data"]["text"], "x");
  EXPECT_EQ(lines[1]["time"].get<std::string>().back(), 'Z');
}

TEST_F(RecordWriterTest, NumbersGoOnAfterATornLine) {
  open()->event("run", {});
  std::ofstream(events(), std::ios::app) << "{\"sequence\":2,\"da";
  open()->event("run", {});
  const auto lines = json_lines(events());
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_EQ(lines[1]["sequence"], 2);
}

TEST_F(RecordWriterTest, EventsAreWrittenAtOnceMetricsAtSoManyLines) {
  const auto writer = open(1, 3, std::chrono::hours(1));
  writer->event("run", {});
  EXPECT_TRUE(test::eventually([&] { return json_lines(events()).size() == 1; }));
  for (int i = 0; i < 3; ++i) writer->metrics({{"step", i}});
  EXPECT_TRUE(test::eventually([&] { return json_lines(metrics()).size() == 3; }));
  writer->set_flush_every(1);
  writer->metrics({{"step", 4}});
  EXPECT_TRUE(test::eventually([&] { return json_lines(metrics()).size() == 4; }));
}

TEST_F(RecordWriterTest, ALineOfMetricsAloneIsWrittenToo) {
  const auto writer = open(1, 3, std::chrono::milliseconds(50));
  writer->metrics({{"step", 1}});
  EXPECT_TRUE(test::eventually([&] { return json_lines(metrics()).size() == 1; }));
}

TEST_F(RecordWriterTest, RunRecordGetsStateAndStep) {
  ASSERT_TRUE(write_json_file(folder_.path() / "run.json", {{"id", "k7"}, {"launcher_pid", 1}}));
  {
    const auto writer = open();
    writer->run({{"state", "running"}});
    writer->metrics({{"step", 41}});
    writer->metrics({{"step", 42}});
  }
  EXPECT_EQ(*read_json_file(folder_.path() / "run.json"),
            (Json{{"id", "k7"}, {"launcher_pid", 1}, {"state", "running"}, {"step", 42}}));
}

TEST_F(RecordWriterTest, NothingIsLostFromManyThreads) {
  constexpr int kThreads = 4;
  constexpr int kLines = 500;
  {
    const auto writer = open();
    std::vector<std::thread> threads;
    for (int thread = 0; thread < kThreads; ++thread)
      threads.emplace_back([&] {
        for (int i = 0; i < kLines; ++i) {
          writer->metrics({{"step", i}});
          writer->event("eval", {{"step", i}});
          if (i % 100 == 0) writer->flush();
        }
      });
    for (auto& thread : threads) thread.join();
    EXPECT_EQ(writer->lost().queue_full, 0u);
  }
  EXPECT_EQ(json_lines(metrics()).size(), static_cast<std::size_t>(kThreads * kLines));
  const auto lines = json_lines(events());
  ASSERT_EQ(lines.size(), static_cast<std::size_t>(kThreads * kLines));
  for (std::size_t i = 0; i < lines.size(); ++i) ASSERT_EQ(lines[i]["sequence"], i + 1);
}

TEST_F(RecordWriterTest, AFullDiskIsToldOnceCountedAndBorne) {
  ASSERT_TRUE(write_json_file(folder_.path() / "run.json", Json::object()));
  const pid_t child = ::fork();
  if (child == 0) {
    ::signal(SIGXFSZ, SIG_IGN);
    std::vector<std::string> told;
    RecordWriter::Options options;
    options.directory = folder_.path();
    options.tell = [&](const std::string& text) { told.push_back(text); };
    auto writer = *RecordWriter::open(std::move(options));
    writer->event("run", {});
    writer->flush();
    const rlimit small{150, RLIM_INFINITY};
    ::setrlimit(RLIMIT_FSIZE, &small);
    for (int i = 0; i < 3; ++i) {
      writer->event("warn", {{"text", std::string(200, 'x')}});
      writer->flush();
    }
    const bool once = told.size() == 1 &&
                      told[0].find("events.jsonl: File too large; training goes on") != std::string::npos;
    const rlimit large{RLIM_INFINITY, RLIM_INFINITY};
    ::setrlimit(RLIMIT_FSIZE, &large);
    writer->event("run", {});
    writer->flush();
    const bool again = told.size() == 2 && told[1].find("3 lines were lost") != std::string::npos;
    ::_exit(once && again && writer->lost().disk_refused == 3 ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  const auto lines = json_lines(events());
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_EQ(lines[1]["sequence"], 5);  // the gap shows what was lost
}

TEST_F(RecordWriterTest, AFolderThatIsntThereIsAnError) {
  RecordWriter::Options options;
  options.directory = folder_.path() / "nowhere";
  const auto writer = RecordWriter::open(std::move(options));
  ASSERT_FALSE(writer);
  EXPECT_NE(writer.error().message.find("metrics.jsonl: No such file"), std::string::npos);
}

}  // namespace
}  // namespace footplate
