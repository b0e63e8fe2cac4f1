#include "run_files/result_file.h"

#include "tests/unit/run_files/folder_fixture.h"

namespace footplate {
namespace {

class ResultFileTest : public test::FolderTest {};

TEST_F(ResultFileTest, IsReadAsItWasWritten) {
  RunResult result;
  result.code = 75;
  result.reason = kEndedLoad;
  result.step = 812;
  result.state_hash = "00ff00ff00ff00ff";
  result.load = LoadTarget{"/x/step-00000100", 100, "from-100", Json::object(), "order 3 (ann)", {{"x", 1}}};
  ASSERT_TRUE(write_result_file(folder_ / "result.json", result));
  const auto read = read_result_file(folder_ / "result.json");
  ASSERT_TRUE(read);
  EXPECT_EQ(to_json(*read), to_json(result));
}

TEST_F(ResultFileTest, AFieldOfAnotherTypeHidesNothingElse) {
  EXPECT_FALSE(read_result_file(folder_ / "result.json"));
  write("result.json", "5");
  EXPECT_FALSE(read_result_file(folder_ / "result.json"));
  write("result.json", R"({"code": "x", "reason": "done", "step": 3, "note": null, "load": 7})");
  const auto read = read_result_file(folder_ / "result.json");
  ASSERT_TRUE(read);
  EXPECT_EQ(read->code, 1);
  EXPECT_EQ(read->reason, kEndedDone);
  EXPECT_EQ(read->step, 3);
  EXPECT_FALSE(read->load);
}

}  // namespace
}  // namespace footplate
