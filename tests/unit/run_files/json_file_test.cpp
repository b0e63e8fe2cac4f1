#include "run_files/json_file.h"

#include <atomic>

#include "tests/unit/records/fixture.h"

namespace footplate {
namespace {

TEST(JsonFile, UpdateKeepsUnknownMembers) {
  test::TemporaryFolder folder;
  const auto path = folder.path() / "run.json";
  ASSERT_TRUE(write_json_file(path, {{"launcher_pid", 7}, {"state", "starting"}}));
  ASSERT_TRUE(update_json_file(path, {{"state", "running"}, {"step", 3}}));
  EXPECT_EQ(*read_json_file(path), (Json{{"launcher_pid", 7}, {"state", "running"}, {"step", 3}}));
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder.path()), {}), 1);
}

TEST(JsonFile, AMissingOrBrokenFileCountsAsEmpty) {
  test::TemporaryFolder folder;
  const auto path = folder.path() / "run.json";
  EXPECT_FALSE(read_json_file(path));
  ASSERT_TRUE(update_json_file(path, {{"a", 1}}));
  std::ofstream(path) << "{\"a\":";
  EXPECT_FALSE(read_json_file(path));
  ASSERT_TRUE(update_json_file(path, {{"b", 2}}));
  EXPECT_EQ(*read_json_file(path), (Json{{"b", 2}}));
}

TEST(JsonFile, ErrorsLeaveTheOldOne) {
  test::TemporaryFolder folder;
  const auto error = write_json_file(folder.path() / "no" / "x.json", {});
  ASSERT_FALSE(error);
  EXPECT_NE(error.error().message.find("x.json: No such file"), std::string::npos);
}

TEST(JsonFile, AReaderNeverSeesHalfAFile) {
  test::TemporaryFolder folder;
  const auto path = folder.path() / "run.json";
  ASSERT_TRUE(write_json_file(path, {{"step", 0}}));
  std::atomic<bool> done{false};
  std::thread writer([&] {
    for (int step = 1; step <= 500; ++step)
      ASSERT_TRUE(update_json_file(
          path, {{"step", step}, {"padding", std::string(static_cast<std::size_t>(step) * 20, 'x')}}));
    done = true;
  });
  int last = 0;
  while (!done) {
    const auto json = read_json_file(path);
    ASSERT_TRUE(json) << json.error().message;
    const int step = (*json)["step"];
    EXPECT_GE(step, last);
    last = step;
  }
  writer.join();
}

TEST(JsonFile, LevelsAreBounded) {
  test::TemporaryFolder folder;
  const auto path = folder.path() / "deep.json";
  std::ofstream(path) << std::string(kMaxLevels, '[') << std::string(kMaxLevels, ']');
  EXPECT_TRUE(read_json_file(path));
  std::ofstream(path) << std::string(kMaxLevels + 1, '[') << std::string(kMaxLevels + 1, ']');
  const auto deep = read_json_file(path);
  ASSERT_FALSE(deep);
  EXPECT_EQ(deep.error().kind, ErrorKind::failed);
  EXPECT_NE(deep.error().message.find("deep.json is not JSON (or has more than 64 levels)"),
            std::string::npos);
}

}  // namespace
}  // namespace footplate
