// What clients can do to the console, and can't: floods, garbage, slow readers, sockets in odd states.

#include <gmock/gmock.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <random>

#include "console/client/link/run_connection.h"
#include "fake_rank0.h"
#include "test_client.h"

namespace footplate::test {
namespace {

using testing::HasSubstr;

TEST(HostLimits, SocketIsPrivateAndMadeAgain) {
  const TemporaryFolder folder;
  FakeRank0 rank0(folder.path());
  { TestClient client(rank0.socket()); }
  struct stat info {};
  ASSERT_EQ(::lstat(rank0.socket().c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600U);
  ASSERT_EQ(::lstat(rank0.socket().parent_path().c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0700U);
  std::filesystem::remove_all(rank0.socket().parent_path());
  EXPECT_TRUE(eventually([&] { return std::filesystem::exists(rank0.socket()); }));
  TestClient client(rank0.socket());
  EXPECT_EQ(client.hello()["product"], "footplate");
}

TEST(HostLimits, StaleSocketIsReplaced) {
  const TemporaryFolder folder;
  std::filesystem::create_directory(folder.path() / "socket");
  const std::string path = folder.path() / "socket" / "run.sock";
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::copy(path.begin(), path.end(), std::begin(address.sun_path));
  const int fd = ::socket(AF_UNIX, SOCK_STREAM, 0);
  ASSERT_EQ(::bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof(address)), 0);
  ::close(fd);
  FakeRank0 rank0(folder.path());
  TestClient client(rank0.socket());
  EXPECT_EQ(client.hello()["product"], "footplate");
}

TEST(HostLimits, AnotherUserIsTurnedAway) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root to become someone else";
  const TemporaryFolder folder;
  FakeRank0 rank0(folder.path());
  { TestClient client(rank0.socket()); }
  // As if the folder had been opened by mistake: the peer's credentials still decide.
  std::filesystem::permissions(folder.path(), std::filesystem::perms::all);
  std::filesystem::permissions(rank0.socket().parent_path(), std::filesystem::perms::all);
  std::filesystem::permissions(rank0.socket(), std::filesystem::perms::all);
  const pid_t child = ::fork();
  if (child == 0) {
    if (::setuid(65534) != 0) ::_exit(3);
    TestClient client(rank0.socket());
    ::_exit(client.hello().value("type", "") == "error" ? 0 : 1);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST(HostLimits, ThousandGarbageLines) {
  const TemporaryFolder folder;
  FakeRank0 rank0(folder.path());
  TestClient client(rank0.socket());
  TestClient other(rank0.socket());
  std::mt19937 random(7);
  const std::vector<std::string> seeds = {
      "",
      "{",
      "[]",
      "null",
      "42",
      "\"x\"",
      "{\"op\":7}",
      "{\"op\":\"set\",\"changes\":[1]}",
      "{\"op\":\"eval\",\"code\":[]}",
      "{\"op\":\"get\",\"names\":{\"a\":1}}",
      "{\"op\":\"subscribe\",\"topics\":5}",
      "{\"op\":\"cancel\",\"order\":\"x\"}",
      std::string(100, '['),
      "{\"op\":\"set\",\"changes\":{\"log.every\":{\"a\":[]}}}",
      "{\"op\":\"call\",\"action\":\"eval.now\",\"arguments\":[1,2]}",
      "{\"op\":\"set\",\"timeout_s\":\"x\",\"changes\":{\"log.every\":1}}"};
  int answers = 0;
  for (int i = 0; i < 1000; ++i) {
    std::string line = seeds[random() % seeds.size()];
    for (unsigned k = random() % 4; k > 0 && !line.empty(); --k)
      line[random() % line.size()] = static_cast<char>(random() % 255 + 1);
    std::erase(line, '\n');
    client.send_text(line + "\n");
    Json answer = client.read(5);
    while (!answer.is_null() && answer["type"] != "error" && answer["type"] != "result")
      answer = client.read(5);
    ASSERT_FALSE(answer.is_null()) << "after line " << i << ": " << line;
    ++answers;
  }
  EXPECT_EQ(answers, 1000);
  EXPECT_EQ(other.ask({{"op", "ping"}})["type"], "result");
}

TEST(HostLimits, TooLongALineEndsTheConnection) {
  const TemporaryFolder folder;
  FakeRank0 rank0(folder.path());
  TestClient client(rank0.socket());
  client.send_text(std::string((1 << 20) + 10, 'x'));
  EXPECT_THAT(client.read()["error"]["message"], HasSubstr("longer than 1048576 bytes"));
  EXPECT_TRUE(client.read(2).is_null());
  TestClient next(rank0.socket());
  EXPECT_THAT(next.run("return ('x'):rep(2000000)"), HasSubstr("cut here: 2000000 bytes in all"));
  EXPECT_THAT(next.run("error(('x'):rep(2000000))"), HasSubstr("xxx"));
  EXPECT_THAT(next.run("return ('\\1'):rep(400000)"), HasSubstr("cut here"));
}

TEST(HostLimits, LongOutputIsCutBetweenCharacters) {
  const TemporaryFolder folder;
  FakeRank0 rank0(folder.path());
  TestClient client(rank0.socket());
  const auto printed = [&](std::size_t before) {
    client.others.clear();
    client.run("io_text = ('x'):rep(" + std::to_string(before) + ") .. 'éy' print(io_text)");
    std::string text;
    for (const Json& line : client.others)
      if (line["stream"] == "out") text += line["text"];
    return text;
  };
  const std::size_t piece = 128 << 10, all = 1 << 20;
  EXPECT_TRUE(printed(piece - 1) == std::string(piece - 1, 'x') + "éy\n");
  EXPECT_TRUE(printed(all - 1) == std::string(all - 1, 'x'));
}

TEST(HostLimits, SeventeenthClientIsTurnedAway) {
  const TemporaryFolder folder;
  FakeRank0 rank0(folder.path());
  std::vector<std::unique_ptr<TestClient>> clients;
  for (int i = 0; i < 16; ++i) clients.push_back(std::make_unique<TestClient>(rank0.socket()));
  TestClient extra(rank0.socket());
  EXPECT_THAT(extra.hello()["error"]["message"], HasSubstr("16 clients are connected already"));
  const auto refused =
      Connection::open(rank0.socket(), std::chrono::steady_clock::now() + std::chrono::seconds(10));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, ErrorKind::refused);
  EXPECT_THAT(refused.error().message, HasSubstr("16 clients are connected already"));
  clients.pop_back();
  EXPECT_TRUE(eventually([&] { return TestClient(rank0.socket()).hello()["type"] == "hello"; }));
}

TEST(HostLimits, OpenRequestsAreBounded) {
  const TemporaryFolder folder;
  FakeRank0 rank0(folder.path());
  rank0.hold_orders = true;
  TestClient client(rank0.socket());
  std::vector<int> ids;
  for (int i = 0; i < 65; ++i) ids.push_back(client.send({{"op", "set"}, {"changes", {{"log.every", i}}}}));
  EXPECT_THAT(client.answer(ids.back())["error"]["message"], HasSubstr("64 requests are open already"));
}

TEST(HostLimits, SlowReaderLosesEventsAndIsTold) {
  const TemporaryFolder folder;
  FakeRank0 rank0(folder.path(), {"--limit", "events=100"});
  TestClient slow(rank0.socket());
  TestClient quick(rank0.socket());
  EXPECT_EQ(slow.ask({{"op", "subscribe"}, {"topics", {"metrics"}}})["value"]["sequence"], 1);
  const std::string padding(2000, 'x');
  constexpr int kEvents = 3000;
  for (int i = 1; i <= kEvents; ++i) {
    rank0.send({{"type", "event"},
                {"topic", "metrics"},
                {"time", std::to_string(i)},
                {"data", {{"step", i}, {"padding", padding}}}});
    if (i % 500 == 0) {
      EXPECT_EQ(quick.ask({{"op", "ping"}})["type"], "result");
    }
  }
  std::uint64_t seen = 0, lost = 0, last = 0;
  while (last < kEvents) {
    const Json event = slow.read();
    ASSERT_FALSE(event.is_null()) << "after event " << last;
    const auto told = event.value("lost", std::uint64_t{0});
    ASSERT_EQ(event["sequence"], last + told + 1);
    last = event["sequence"];
    lost += told;
    ++seen;
  }
  EXPECT_GT(lost, 0U);
  EXPECT_EQ(seen + lost, static_cast<std::uint64_t>(kEvents));
  EXPECT_EQ(quick.run("return metrics.step"), "3000");
  const Json again = quick.ask({{"op", "subscribe"}, {"topics", {"*"}}, {"since", 2990}})["value"];
  EXPECT_EQ(again["lost"], 0);
  EXPECT_EQ(quick.read()["data"]["step"], 2990);
  EXPECT_EQ(slow.ask({{"op", "subscribe"}, {"since", 1}})["value"]["lost"], 2900);
}

TEST(HostLimits, ATopicThatIsNoneIsRefused) {
  const TemporaryFolder folder;
  FakeRank0 rank0(folder.path());
  TestClient client(rank0.socket());
  const Json error = client.ask({{"op", "subscribe"}, {"topics", {"metric"}}})["error"];
  EXPECT_EQ(error["kind"], "usage");
  EXPECT_THAT(error["message"], HasSubstr("there is no topic 'metric'; did you mean 'metrics'?"));
}

TEST(HostLimits, WhoReadsNothingIsDisconnected) {
  const TemporaryFolder folder;
  FakeRank0 rank0(folder.path(), {"--limit", "unread_bytes=2000000"});
  TestClient client(rank0.socket());
  TestClient other(rank0.socket());
  for (int i = 0; i < 3000; ++i) client.send({{"op", "schema"}});
  EXPECT_EQ(other.ask({{"op", "ping"}})["type"], "result");
  while (!client.read(5).is_null()) {
  }
  EXPECT_EQ(other.ask({{"op", "ping"}})["type"], "result");
}

TEST(HostLimits, EveryClientHearsOfEveryOrder) {
  const TemporaryFolder folder;
  FakeRank0 rank0(folder.path());
  TestClient watcher(rank0.socket());
  watcher.ask({{"op", "subscribe"}, {"topics", {"order"}}});
  TestClient client(rank0.socket());
  client.run("log.every = 10");
  EXPECT_EQ(watcher.read()["data"]["state"], "accepted");
  const Json applied = watcher.read();
  EXPECT_EQ(applied["data"]["state"], "applied");
  EXPECT_EQ(applied["data"]["order"]["session"], client.hello()["session"]);
}

TEST(HostLimits, AFloodOfShortLinesStaysInItsOwnSocket) {
  const TemporaryFolder folder;
  FakeRank0 rank0(folder.path());
  TestClient flood(rank0.socket());
  TestClient other(rank0.socket());
  const std::string lines(1 << 16, '\n');
  std::vector<char> answers(1 << 20);
  std::size_t taken = 0;
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(1);
  while (std::chrono::steady_clock::now() < end) {
    const ssize_t sent = ::send(flood.fd(), lines.data(), lines.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    taken += sent > 0 ? static_cast<std::size_t>(sent) : 0;
    while (::recv(flood.fd(), answers.data(), answers.size(), MSG_DONTWAIT) > 0) {
    }
  }
  EXPECT_GT(taken, std::size_t{1} << 16);
  EXPECT_LT(taken, std::size_t{4} << 20);
  EXPECT_EQ(other.run("return 1"), "1");
}

}  // namespace
}  // namespace footplate::test
