#include "run_files/starts.h"

#include "tests/unit/records/fixture.h"

namespace footplate {
namespace {

class StartsTest : public testing::Test {
 protected:
  void append(const std::string& text) {
    std::ofstream(folder_.path() / "starts.jsonl", std::ios::app) << text;
  }
  Result<std::vector<StartRecord>> read() { return read_start_records(folder_.path()); }

  test::TemporaryFolder folder_;
};

TEST_F(StartsTest, RoundTrip) {
  const StartRecord start{.start = 2,
                          .time = "2026-11-20T19:00:00.000Z",
                          .versions = {{"mpi", "5"}},
                          .hosts = {"a", "b"},
                          .world_size = 2,
                          .step = 300,
                          .resumed = "/runs/x/checkpoints/main/step-00000300",
                          .journal = 7,
                          .given = {{"optim.lr", 0.5}},
                          .branch = "from-300",
                          .loaded = true};
  append(to_line(to_json(start)));
  EXPECT_EQ(to_json(start)["config"], "config-2.json");
  const auto starts = read();
  ASSERT_TRUE(starts);
  ASSERT_EQ(starts->size(), 1u);
  EXPECT_EQ(to_json(starts->front()), to_json(start));
  EXPECT_TRUE(to_json(StartRecord())["resumed"].is_null()) << "a fresh start";
}

TEST_F(StartsTest, WithoutAFileThereIsNone) {
  ASSERT_TRUE(read());
  EXPECT_TRUE(read()->empty());
}

TEST_F(StartsTest, ATornLastLineIsLeftOut) {
  append("{\"start\": 1}\n{\"start\": 2}");
  ASSERT_TRUE(read());
  EXPECT_EQ(read()->size(), 1u);
  append("\nnot JSON\n");
  ASSERT_FALSE(read());
  EXPECT_EQ(read().error().kind, ErrorKind::usage);
  EXPECT_NE(read().error().message.find("starts.jsonl has a line that isn't an object"), std::string::npos);
}

TEST_F(StartsTest, FieldsOfOtherTypesAreAsIfTheyWereMissing) {
  append(R"({"start": "x", "time": 3, "hosts": {}, "given": [], "step": null, "loaded": 1, "journal": "n"})"
         "\n");
  ASSERT_TRUE(read());
  Json expected = to_json(StartRecord());
  expected["versions"] = Json::object();
  EXPECT_EQ(to_json(read()->front()), expected);
}

}  // namespace
}  // namespace footplate
