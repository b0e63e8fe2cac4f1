#include "run_files/line_files.h"

#include "tests/unit/run_files/folder_fixture.h"

namespace footplate {
namespace {

class LineFilesTest : public test::FolderTest {};

TEST_F(LineFilesTest, EventsThatCannotBeReadAreCounted) {
  write("events.jsonl", R"({"topic":"note","time":"T1","data":{"step":5,"text":"a"}})"
                        "\n{ torn\n5\n"
                        R"({"topic":"order","time":"T2","data":{"state":"finished"}})"
                        "\n"
                        R"({"topic":"later","time":"T3","data":5})"
                        "\n"
                        R"({"topic":"note","time":"T4","data":{"step":6,"text":"b"}})"
                        "\n"
                        R"({"topic":"note","ti)");
  std::string told;
  const auto unreadable = read_event_lines(folder_, [&](const Event& event) {
    told += event.time + " " + std::get<Note>(event.data).text + "; ";
  });
  EXPECT_EQ(told, "T1 a; T4 b; ");
  EXPECT_EQ(unreadable, 3U) << "neither the topic of a later version nor the last line without its end";
}

TEST_F(LineFilesTest, OnlySoManyBytesFromTheEnd) {
  std::string text;
  for (int step = 0; step < 100; ++step) text += "{\"step\":" + std::to_string(step + 100) + "}\n";
  write("metrics.jsonl", text);
  double first = 0;
  int count = 0;
  const auto use = [&](const MetricsLine& line) {
    if (count++ == 0) first = *line.step;
  };
  EXPECT_EQ(read_metrics_lines(folder_, use, 30), 0U);
  EXPECT_EQ(count, 2) << "the first one is cut";
  EXPECT_EQ(first, 198);
}

TEST_F(LineFilesTest, MetricsSayWhereTheyAreFrom) {
  write("metrics.jsonl", R"({"step":7,"time":12.5,"branch":"main","start":2,"train/loss":"@nan"})"
                         "\n"
                         R"({"step":"x","branch":5})"
                         "\n");
  std::vector<MetricsLine> lines;
  EXPECT_EQ(read_metrics_lines(folder_, [&](const MetricsLine& line) { lines.push_back(line); }), 0U);
  ASSERT_EQ(lines.size(), 2U);
  EXPECT_EQ(lines[0].step, 7);
  EXPECT_EQ(lines[0].time, 12.5);
  EXPECT_EQ(lines[0].branch, "main");
  EXPECT_EQ(lines[0].start, 2);
  EXPECT_TRUE(lines[0].metrics.is_of_training());
  EXPECT_FALSE(lines[1].step);
}

TEST_F(LineFilesTest, NoFileHasNoLines) {
  EXPECT_EQ(read_event_lines(folder_, [](const Event&) { FAIL(); }), 0U);
  EXPECT_EQ(read_start_lines(folder_, [](const StartRecord&) { FAIL(); }), 0U);
}

}  // namespace
}  // namespace footplate
