// What people at a prompt ask of footplate-console: names, help, a lower role, and to be told of.

#include <gmock/gmock.h>

#include "fake_rank0.h"
#include "test_client.h"

namespace footplate::test {
namespace {

using testing::HasSubstr;

TEST(Attachments, CompleteAndHelp) {
  const TemporaryFolder folder;
  FakeRank0 rank0(folder.path());
  TestClient client(rank0.socket());
  const Json answer = client.ask({{"op", "complete"}, {"code", "return log.ev"}})["value"];
  EXPECT_EQ(answer["start"], 7);
  EXPECT_EQ(answer["items"][0]["text"], "log.every");
  EXPECT_EQ(
      client.ask({{"op", "complete"}, {"code", "log.every + x"}, {"cursor", 6}})["value"]["items"][0]["text"],
      "log.every");
  EXPECT_EQ(client.ask({{"op", "complete"}, {"code", 5}})["error"]["kind"], "usage");
  client.ask({{"op", "set"}, {"changes", {{"log.every", 10}}}});
  EXPECT_THAT(client.ask({{"op", "complete"}, {"code", "log.ev"}})["value"]["items"][0]["note"],
              HasSubstr("10 steps"));
  EXPECT_THAT(client.ask({{"op", "help"}, {"name", "log.every"}})["value"]["text"],
              HasSubstr("log.every = 10 steps"));
  EXPECT_THAT(client.ask({{"op", "help"}})["value"]["text"], HasSubstr("eval.now"));
}

TEST(Attachments, TheRoleOnlyGetsLower) {
  const TemporaryFolder folder;
  FakeRank0 rank0(folder.path());
  TestClient client(rank0.socket());
  EXPECT_THAT(client.run("run.pause()"), HasSubstr("run.pause"));
  EXPECT_EQ(client.ask({{"op", "role"}, {"role", "view"}})["value"]["role"], "view");
  EXPECT_THAT(client.run("run.pause()"), HasSubstr("needs the role operate; this session has view"));
  EXPECT_EQ(client.ask({{"op", "set"}, {"changes", {{"log.every", 3}}}})["error"]["kind"], "refused");
  EXPECT_EQ(client.ask({{"op", "role"}, {"role", "admin"}})["error"]["kind"], "refused");
  EXPECT_EQ(client.ask({{"op", "role"}, {"role", "boss"}})["type"], "error");
  EXPECT_EQ(client.ask({{"op", "role"}})["value"]["role"], "view");
  TestClient other(rank0.socket());
  EXPECT_EQ(other.hello()["role"], "admin");
  EXPECT_EQ(rank0.orders().size(), 1U);
}

TEST(Attachments, ComingAndGoingIsTold) {
  const TemporaryFolder folder;
  FakeRank0 rank0(folder.path());
  TestClient watcher(rank0.socket());
  watcher.ask({{"op", "subscribe"}, {"topics", {"client"}}});
  {
    TestClient client(rank0.socket());
    EXPECT_EQ(client.ask({{"op", "attach"}, {"from", "pts/3"}})["value"]["others"], Json::array());
    const Json event = watcher.read();
    EXPECT_EQ(event["topic"], "client");
    EXPECT_EQ(event["data"]["state"], "attached");
    EXPECT_EQ(event["data"]["from"], "pts/3");
    TestClient second(rank0.socket());
    const Json others = second.ask({{"op", "attach"}})["value"]["others"];
    ASSERT_EQ(others.size(), 1U);
    EXPECT_EQ(others[0]["session"], client.hello()["session"]);
    EXPECT_EQ(watcher.read()["data"]["state"], "attached");
  }
  EXPECT_EQ(watcher.read()["data"]["state"], "detached");
  EXPECT_EQ(watcher.read()["data"]["state"], "detached");
}

TEST(Attachments, TheLastResultIsKept) {
  const TemporaryFolder folder;
  FakeRank0 rank0(folder.path());
  TestClient client(rank0.socket());
  EXPECT_EQ(client.run("20 + 1"), "21");
  EXPECT_EQ(client.run("_ * 2"), "42");
  EXPECT_EQ(client.run("local x = 5"), "");
  EXPECT_EQ(client.run("_"), "42");
  EXPECT_EQ(client.run("nil"), "");
  EXPECT_EQ(client.run("_, 1"), "42\n1");
  TestClient other(rank0.socket());
  EXPECT_THAT(other.run("_"), HasSubstr("unknown name '_'"));
}

}  // namespace
}  // namespace footplate::test
