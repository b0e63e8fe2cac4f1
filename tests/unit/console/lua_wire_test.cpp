#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <string>
#include <string_view>
#include <variant>

#include "console/lua/session/wire.h"
#include "fake_console.h"

namespace footplate::test {
namespace {

using testing::HasSubstr;

/// The console's end of descriptor 3, and the process's.
class LuaWire : public testing::Test {
 protected:
  LuaWire() { EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends_.data()), 0); }
  ~LuaWire() override {
    for (const int end : ends_) ::close(end);
  }

  void console_says(std::string_view lines) {
    ASSERT_EQ(::send(ends_[0], lines.data(), lines.size(), 0), static_cast<ssize_t>(lines.size()));
  }
  int process_end() const { return ends_[1]; }

 private:
  std::array<int, 2> ends_{};
};

TEST_F(LuaWire, TasksComeInTheirOrder) {
  console_says(
      "{\"type\":\"hello\",\"session\":\"s3\",\"kind\":\"job\",\"script\":\"watch.lua\"}\n"
      "{\"type\":\"register\",\"id\":\"r\",\"chunk\":2,\"code\":\"every(1, print)\"}\n"
      "{\"type\":\"settings\",\"settings\":{\"log.every\":{\"value\":5,\"source\":\"order 1\"}}}\n"
      "{\"type\":\"handle\",\"id\":7,\"index\":1,\"event\":{\"step\":3},\"at_step\":9}\n");
  lua::Wire wire(process_end());
  SettingsUpdate update;
  wire.on_settings = [&](const SettingsUpdate& told) { update = told; };
  const SessionHello hello = wire.hello();
  EXPECT_EQ(hello.kind, SessionKind::job);
  EXPECT_EQ(hello.script, "watch.lua");
  EXPECT_EQ(std::get<RegisterChunk>(wire.next()).code, "every(1, print)");
  EXPECT_EQ(update.settings.at("log.every").value, 5);
  const auto rule = std::get<HandleRule>(wire.next());
  EXPECT_EQ(rule.at_step, 9);
  EXPECT_EQ(rule.event, (Json{{"step", 3}}));
}

TEST_F(LuaWire, ALineThatCantBeReadEndsTheProcess) {
  const auto end_at = [&](const char* line) {
    console_says(line);
    lua::Wire wire(process_end());
    wire.next();
  };
  EXPECT_EXIT(end_at("{\"type\":\"eval\",\"id\":1,\"code\":5}\n"), testing::ExitedWithCode(1),
              "malformed line from the console: field 'code' has to be text");
  EXPECT_EXIT(end_at("{\"type\":\"evil\"}\n"), testing::ExitedWithCode(1), "unknown message 'evil'");
  EXPECT_EXIT(end_at("[]\n"), testing::ExitedWithCode(1), "has to be an object");
  EXPECT_EXIT(end_at("nonsense\n"), testing::ExitedWithCode(1), "not a JSON object");
}

class MalformedAnswers : public LuaChunks {};

TEST_F(MalformedAnswers, AreErrorsOfTheChunkThatNameTheField) {
  console.status["state"] = "dancing";
  EXPECT_THAT(
      error_of("return run.state"),
      HasSubstr("the console's answer to status is malformed: field 'state' has to be one of starting"));
  console.status = Json::array();
  EXPECT_THAT(error_of("return ranks[0]"), HasSubstr("has to be an object"));
  console.others = {{{"id", "three"}}};
  EXPECT_THAT(error_of("return orders()"),
              HasSubstr("answer to orders is malformed: field 'id' has to be a whole number"));
  console.pending = {{{"name", 5}}};
  EXPECT_THAT(error_of("settings('pending')"), HasSubstr("field 'name' has to be text"));
  console.stacks = {{"ranks", {{{"rank", 0}, {"threads", 1}}}}};
  EXPECT_THAT(error_of("ranks.stacks()"), HasSubstr("field 'threads' has to be a list"));
}

}  // namespace
}  // namespace footplate::test
