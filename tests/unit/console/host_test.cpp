// footplate-console from end to end: a fake rank 0, real footplate-lua processes, clients on the socket.

#include <gmock/gmock.h>
#include <sched.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <algorithm>
#include <fstream>
#include <sstream>

#include "fake_rank0.h"
#include "test_client.h"
#include "test_schema.h"

namespace footplate::test {
namespace {

using testing::HasSubstr;
std::string read_file(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kSanitized = true;
#else
constexpr bool kSanitized = false;
#endif

/// Rank 0 is asked once for all who ask for the same meanwhile, by whatever role.
TEST(Host, StacksComeFromTheRanks) {
  const TemporaryFolder folder;
  FakeRank0 rank0(folder.path(), {"--role", "view"});
  TestClient one(rank0.socket()), other(rank0.socket());
  const int first = one.send({{"op", "stacks"}}), second = one.send({{"op", "stacks"}, {"rank", 7}});
  ASSERT_TRUE(eventually([&] { return rank0.lines("ranks").size() == 2; }));
  EXPECT_EQ(rank0.lines("ranks")[0], (Json{{"type", "ranks"}, {"query", "stacks"}}));
  EXPECT_EQ(rank0.lines("ranks")[1], (Json{{"type", "ranks"}, {"query", "stacks"}, {"rank", 7}}));
  const int third = other.send({{"op", "stacks"}, {"rank", 7}});
  EXPECT_EQ(other.ask({{"op", "ping"}})["type"], "result") << "the console has read the one before, too";
  const Json of_7 = {{"rank", 7}, {"ranks", {{{"rank", 7}, {"threads", Json::array()}}}}};
  rank0.send(RanksAnswer{"stacks", 7, of_7});
  EXPECT_EQ(one.answer(second)["value"], of_7);
  EXPECT_EQ(other.answer(third)["value"], of_7);
  EXPECT_EQ(one.answer(first)["error"]["kind"], "timed_out") << "nobody has answered for all";
  EXPECT_EQ(rank0.lines("ranks").size(), 2U);
  const Json all = {{"rank", nullptr}, {"ranks", Json::array()}};
  rank0.send(RanksAnswer{"stacks", std::nullopt, all});  // too late, for nobody
  const int again = one.send({{"op", "stacks"}});
  ASSERT_TRUE(eventually([&] { return rank0.lines("ranks").size() == 3; }));
  rank0.send(RanksAnswer{"stacks", std::nullopt, all});
  EXPECT_EQ(one.answer(again)["value"], all);
  for (const int rank : {-1, 8})
    EXPECT_THAT(one.ask({{"op", "stacks"}, {"rank", rank}})["error"]["message"],
                HasSubstr("there is no rank " + std::to_string(rank) + "; there are 0 to 7"));
  EXPECT_EQ(one.ask({{"op", "stacks"}, {"rank", "all"}})["error"]["kind"], "usage");
}

/// A line of metrics moves what is computed, for everybody who reads it.
TEST(Host, AComputedSettingIsThatOfTheLatestLine) {
  const TemporaryFolder folder;
  FakeRank0 rank0(folder.path());
  TestClient client(rank0.socket());
  const auto lr = [&] {
    return client.ask({{"op", "get"}, {"names", {"optim.lr"}}})["value"]["optim.lr"]["value"];
  };
  const auto eval = [&](const std::string& code) {
    return client.ask({{"op", "eval"}, {"code", code}})["value"];
  };
  EXPECT_EQ(eval("return optim.lr")["value"], lr());
  for (const double now : {2e-4, 1e-4}) {
    rank0.send_event("metrics", {{"step", 13000}, {"train/loss", 2.5}, {"train/lr", now}});
    ASSERT_TRUE(eventually([&] { return lr() == now; }));
    EXPECT_EQ(eval("return optim.lr")["value"], now);
    EXPECT_THAT(client.ask({{"op", "help"}, {"name", "optim.lr"}})["value"]["text"],
                HasSubstr(to_text(Value(now))));
  }
  rank0.send_event("metrics", {{"step", 13050}, {"eval/loss", 2.5}});
  EXPECT_EQ(eval("return optim.lr")["value"], 1e-4);
  EXPECT_EQ(TestClient(rank0.socket()).ask({{"op", "eval"}, {"code", "optim.lr"}})["value"]["text"], "1e-4");
}

TEST(Host, CountsOfCollectivesComeFromTheRanks) {
  const TemporaryFolder folder;
  FakeRank0 rank0(folder.path());
  TestClient client(rank0.socket());
  const int asked = client.send({{"op", "comm_report"}});
  ASSERT_TRUE(eventually([&] { return rank0.lines("ranks").size() == 1; }));
  EXPECT_EQ(rank0.lines("ranks")[0], (Json{{"type", "ranks"}, {"query", "comm"}}));
  const Json report = {{"patterns", Json::array()}, {"proposals", Json::array()}};
  rank0.send(RanksAnswer{"comm", std::nullopt, report});
  EXPECT_EQ(client.answer(asked)["value"], report);
}

TEST(Host, AFieldOfTheWrongTypeIsNamed) {
  const TemporaryFolder folder;
  FakeRank0 rank0(folder.path());
  TestClient client(rank0.socket());
  const auto error_of = [&](const Json& request) {
    const Json error = client.ask(request)["error"];
    EXPECT_EQ(error["kind"], "usage");
    return error["message"].get<std::string>();
  };
  EXPECT_EQ(error_of({{"op", "eval"}, {"code", 5}}), "field 'code' has to be text");
  EXPECT_EQ(error_of({{"op", "cancel"}, {"order", "x"}}), "field 'order' has to be a whole number");
  EXPECT_EQ(error_of({{"op", "get"}, {"names", 5}}), "field 'names' has to be a list");
  EXPECT_EQ(error_of({{"op", "role"}, {"role", "boss"}}),
            "field 'role' has to be one of view, operate, admin");
  EXPECT_EQ(error_of({{"op", "eval"}, {"timeout_s", "@nan"}}),
            "field 'timeout_s' has to be a number of seconds");
  EXPECT_THAT(error_of({{"op", "set"}, {"changes", {1}}}),
              HasSubstr("field 'changes' has to be {name: value} or a list of changes: "));
  EXPECT_EQ(error_of({{"op", 7}}), "field 'op' has to be text");
}

/// What of rank 0's lines isn't of the protocol is left out, and the console goes on.
TEST(Host, AMalformedLineOfRank0IsLeftOut) {
  const TemporaryFolder folder;
  FakeRank0 rank0(folder.path());
  TestClient client(rank0.socket());
  for (const Json& line :
       {Json(5), Json::array(), Json{{"type", "nonsense"}}, Json{{"type", 5}},
        Json{{"type", "status"}, {"status", 5}}, Json{{"type", "order"}, {"id", "x"}},
        Json{{"type", "call"}, {"state", "odd"}}, Json{{"type", "settings"}, {"settings", 1}},
        Json{{"type", "event"}, {"topic", "later"}, {"data", 1}},
        Json{{"type", "event"}, {"topic", "eval"}, {"data", 1}}, Json{{"type", "ranks"}}})
    rank0.send(line);
  rank0.send_status(900);
  EXPECT_TRUE(eventually([&] { return client.ask({{"op", "status"}})["value"]["step"] == 900; }));
}

TEST(Host, TellsWhatWaitsForTheNextStart) {
  const TemporaryFolder folder;
  FakeRank0 rank0(folder.path(), {}, Json::array(), {{"at_start", {{"nccl.buffer_bytes", 0}}}});
  TestClient client(rank0.socket());
  EXPECT_EQ(client.ask({{"op", "pending"}})["value"], Json::array());
  client.ask({{"op", "set"}, {"changes", {{"nccl.buffer_bytes", 4096}, {"log.every", 10}}}});
  const Json pending = client.ask({{"op", "pending"}})["value"];
  ASSERT_EQ(pending.size(), 1U);
  EXPECT_EQ(pending[0]["name"], "nccl.buffer_bytes");
  EXPECT_EQ(pending[0]["value"], 4096);
  EXPECT_EQ(pending[0]["at_start"], 0);
  EXPECT_THAT(client.ask({{"op", "eval"}, {"code", "return settings('pending')"}})["value"]["text"],
              HasSubstr("0 -> 4096"));
  client.ask({{"op", "set"}, {"changes", {{"nccl.buffer_bytes", 0}}}});
  EXPECT_EQ(client.ask({{"op", "pending"}})["value"], Json::array()) << "put back";
}

TEST(Host, HelloAndOperations) {
  const TemporaryFolder folder;
  FakeRank0 rank0(folder.path());
  TestClient client(rank0.socket());
  EXPECT_EQ(client.hello()["product"], "footplate");
  EXPECT_EQ(client.hello()["role"], "admin");
  EXPECT_EQ(client.hello()["run"]["name"], "kjv-3");
  EXPECT_EQ(client.ask({{"op", "ping"}})["value"], Json::object());
  EXPECT_EQ(client.ask({{"op", "status"}})["value"]["step"], 812);
  EXPECT_EQ(client.ask({{"op", "schema"}})["value"]["settings"].size(), test::small_schema().settings.size());
  EXPECT_EQ(client.ask({{"op", "get"}, {"names", {"log.every"}}})["value"]["log.every"]["value"], 50);
  EXPECT_THAT(client.ask({{"op", "get"}, {"names", {"log.evry"}}})["error"]["message"],
              HasSubstr("did you mean log.every?"));
  EXPECT_THAT(client.ask({{"op", "stats"}})["error"]["message"], HasSubstr("unknown operation 'stats'"));
  EXPECT_THAT(
      client.ask({{"op", "set"}, {"changes", {{"log.every", 5}}}, {"at_stp", 20000}})["error"]["message"],
      HasSubstr("'set' has no field 'at_stp'; did you mean 'at_step'?; fields: id op changes at_step"));
  EXPECT_THAT(client.ask({{"op", "ping"}, {"x", 1}})["error"]["message"], HasSubstr("fields: id op"));
  const Json set =
      client.ask({{"op", "set"}, {"changes", {{"log.every", 10}, {"run.time_limit", "30m"}}}})["value"];
  EXPECT_EQ(set["state"], "applied");
  EXPECT_EQ(rank0.orders().at(0).changes.at(1).value, Value(1800.0));
  EXPECT_EQ(client.ask({{"op", "get"}, {"names", {"log.every"}}})["value"]["log.every"]["value"], 10);
  EXPECT_EQ(client.ask({{"op", "set"}, {"changes", {{"log.every", -1}}}})["error"]["kind"], "usage");
  EXPECT_EQ(
      client.ask({{"op", "set"}, {"at_step", 20000}, {"changes", {{"log.every", 3}}}})["value"]["state"],
      "committed");
  EXPECT_EQ(client.ask({{"op", "cancel"}, {"order", 2}})["type"], "result");
  EXPECT_EQ(client.ask({{"op", "orders"}})["value"].size(), 2U);
  const Json call = client.ask(
      {{"op", "call"}, {"action", "eval.now"}, {"arguments", {{"batches", 5}}}, {"wait", true}})["value"];
  EXPECT_EQ(call["state"], "done");
  EXPECT_EQ(call["result"]["loss"], 1.5);
  EXPECT_EQ(client.ask({{"op", "call"}, {"action", "eval.now"}, {"at_step", 20000}})["value"]["state"],
            "committed");
  EXPECT_EQ(rank0.orders().back().at_step, 20000);
  EXPECT_THAT(client.ask({{"op", "call"}, {"action", "eval.now"}, {"at_step", 2.5}})["error"]["message"],
              HasSubstr("'at_step' has to be a whole number"));
  EXPECT_EQ(client.ask({{"op", "bye"}})["type"], "result");
  EXPECT_TRUE(client.read(2).is_null());
}

TEST(Host, ChunksOfLua) {
  const TemporaryFolder folder;
  FakeRank0 rank0(folder.path());
  TestClient client(rank0.socket());
  EXPECT_EQ(client.run("log.every = 10"), "");
  ASSERT_EQ(client.others.size(), 1U);
  EXPECT_EQ(client.others[0]["text"], "log.every 50 -> 10, applied at step 12041 on 8/8 ranks\n");
  EXPECT_EQ(client.others[0]["stream"], "talk");
  EXPECT_EQ(client.run("return log.every, eval.now{ batches = 5 }:wait().loss"), "10\n1.5");
  EXPECT_EQ(client.run("mine = 5"), "");
  EXPECT_EQ(client.run("return mine"), "5");
  TestClient other(rank0.socket());
  EXPECT_THAT(other.run("return mine"), HasSubstr("unknown name"));
  const Json error = client.eval("return 1,\n 2 +");
  EXPECT_EQ(error["error"]["kind"], "script");
  EXPECT_EQ(error["error"]["line"], 2);
  EXPECT_EQ(rank0.orders().at(0).user, rank0.orders().at(1).user);
  EXPECT_EQ(rank0.orders().at(0).session, client.hello()["session"]);
}

TEST(Host, ARefusalReachesTheScript) {
  const TemporaryFolder folder;
  FakeRank0 rank0(folder.path());
  rank0.refuse_orders = true;
  TestClient client(rank0.socket());
  const Json error = client.eval("log.every = 10")["error"];
  EXPECT_EQ(error["kind"], "refused");
  EXPECT_THAT(error["message"], HasSubstr("rank 3: not enough memory"));
}

TEST(Host, AnOrderThatNobodyAgreesOnIsWithdrawn) {
  const TemporaryFolder folder;
  FakeRank0 rank0(folder.path());
  rank0.hold_orders = true;
  TestClient client(rank0.socket());
  const Json error = client.ask({{"op", "eval"}, {"code", "log.every = 10"}, {"timeout_s", 0.2}})["error"];
  EXPECT_EQ(error["kind"], "timed_out");
  EXPECT_THAT(error["message"], HasSubstr("waiting for rank 3: step 812"));
  EXPECT_EQ(client.others.at(0)["text"], "waiting for rank 3: step 812, all_reduce #4471, 42 s\n");
  const Json set = client.ask({{"op", "set"}, {"changes", {{"log.every", 10}}}, {"timeout_s", 0.2}})["error"];
  EXPECT_EQ(set["kind"], "timed_out");
}

TEST(Host, InterruptWithdrawsAWaitingOrder) {
  const TemporaryFolder folder;
  FakeRank0 rank0(folder.path());
  rank0.hold_orders = true;
  TestClient client(rank0.socket());
  const int eval = client.send({{"op", "eval"}, {"code", "mine = 7 log.every = 10"}});
  ASSERT_TRUE(eventually([&] { return !rank0.orders().empty(); }));
  EXPECT_EQ(client.read()["stream"], "talk");  // it waits now
  client.send({{"op", "interrupt"}});
  EXPECT_THAT(client.answer(eval)["error"]["message"], HasSubstr("interrupted; withdrawn, nothing changed"));
  EXPECT_EQ(client.run("return mine"), "7");
}

TEST(Host, InterruptEndsABusyChunkAndKeepsItsVariables) {
  const TemporaryFolder folder;
  FakeRank0 rank0(folder.path());
  TestClient client(rank0.socket());
  client.run("mine = 7");
  const int eval = client.send({{"op", "eval"}, {"code", "print('go') while true do end"}});
  EXPECT_EQ(client.read()["text"], "go\n");
  client.send({{"op", "interrupt"}});
  EXPECT_THAT(client.answer(eval)["error"]["message"], HasSubstr("interrupted"));
  EXPECT_EQ(client.run("return mine"), "7");
}

TEST(Host, RolesAreCheckedForEachOperation) {
  const TemporaryFolder folder;
  FakeRank0 rank0(folder.path(), {"--role", "operate"});
  TestClient client(rank0.socket());
  EXPECT_EQ(client.hello()["role"], "operate");
  EXPECT_EQ(client.ask({{"op", "set"}, {"changes", {{"log.every", 10}}}})["type"], "result");
  EXPECT_EQ(client.ask({{"op", "set"}, {"changes", {{"optim.lr_scale", 0.5}}}})["error"]["kind"], "refused");
  EXPECT_EQ(client.ask({{"op", "call"}, {"action", "run.stop"}})["error"]["kind"], "refused");
  EXPECT_THAT(client.run("optim.lr_scale = 0.5"),
              HasSubstr("needs the role admin; this session has operate"));
  EXPECT_EQ(rank0.orders().size(), 1U);
  const TemporaryFolder folder2;
  FakeRank0 viewed(folder2.path(), {"--role", "view"});
  TestClient viewer(viewed.socket());
  EXPECT_EQ(viewer.run("return log.every"), "50");
  EXPECT_THAT(viewer.run("eval.now()"), HasSubstr("needs the role operate"));
  EXPECT_EQ(viewer.ask({{"op", "cancel"}, {"order", 1}})["type"], "error");
}

TEST(Host, StatusNamesASilentRank0) {
  const TemporaryFolder folder;
  FakeRank0 rank0(folder.path());
  TestClient client(rank0.socket());
  EXPECT_TRUE(eventually([&] {
    rank0.send_status(812);
    return client.ask({{"op", "status"}})["value"]["notes"].empty();
  }));
  Json status;
  ASSERT_TRUE(eventually([&] {
    status = client.ask({{"op", "status"}})["value"];
    return !status["notes"].empty();
  }));
  EXPECT_THAT(status["notes"][0],
              testing::MatchesRegex("rank 0 silent for [0-9]+\\.[0-9] s, last seen at step 812 in reduce "
                                    "\\(all_reduce #4471, 842,499 elements\\)"));
  EXPECT_GT(status["ranks"][0]["silent_s"], 0.75);
  EXPECT_EQ(status["ranks"][0]["stalled"], true);
  EXPECT_GT(status["ranks"][0]["collective"]["age_s"], 0.75);
  EXPECT_TRUE(eventually([&] {
    rank0.send_status(813);
    return client.ask({{"op", "status"}})["value"]["notes"].empty();
  }));
}

TEST(Host, AnOrderThatASilentRank0NeverTookHasChangedNothing) {
  const TemporaryFolder folder;
  FakeRank0 rank0(folder.path());
  TestClient client(rank0.socket());
  client.run("return 1");
  rank0.deaf = true;
  const Json set = client.ask({{"op", "set"}, {"changes", {{"log.every", 10}}}, {"timeout_s", 1.5}})["error"];
  EXPECT_EQ(set["kind"], "timed_out");
  EXPECT_THAT(set["message"], testing::MatchesRegex(
                                  "not agreed by all ranks within 1.5 s \\(rank 0 silent for [0-9.]+ s, last "
                                  "seen at step 812 in reduce .*\\); nothing has changed, and it is "
                                  "withdrawn once rank 0 goes on"));
  const Json eval = client.ask({{"op", "eval"}, {"code", "log.every = 10"}, {"timeout_s", 1.5}})["error"];
  EXPECT_EQ(eval["kind"], "timed_out");
  EXPECT_THAT(eval["message"],
              testing::AllOf(HasSubstr("rank 0 silent for"), HasSubstr("nothing has changed")));
  EXPECT_THAT(client.others.back()["text"], HasSubstr("waiting: rank 0 silent for"));
}

TEST(Host, AnOrderForAStepThatIsOverIsWarnedOf) {
  const TemporaryFolder folder;
  FakeRank0 rank0(folder.path());
  rank0.first_step = 812;
  TestClient client(rank0.socket());
  client.ask({{"op", "subscribe"}, {"topics", {"warn"}}});
  client.ask({{"op", "set"}, {"at_step", 900}, {"changes", {{"log.every", 10}}}});
  client.ask({{"op", "set"}, {"at_step", 100}, {"changes", {{"log.every", 10}}}});
  ASSERT_TRUE(eventually([&] {
    client.ask({{"op", "ping"}});
    return !client.others.empty();
  }));
  ASSERT_EQ(client.others.size(), 1U);
  EXPECT_THAT(
      client.others[0]["data"]["text"],
      testing::MatchesRegex("order 2 \\(.+\\) was for step 100, which was over: it applies at step 812"));
}

TEST(Host, OneShotLeavesNoProcess) {
  const TemporaryFolder folder;
  FakeRank0 rank0(folder.path());
  { TestClient first(rank0.socket()); }
  for (int i = 0; i < 10; ++i) {
    ASSERT_TRUE(eventually([&] { return children_of(rank0.console()).size() == 1; })) << "the spare";
    TestClient client(rank0.socket());
    EXPECT_THAT(client.run("return status()"), HasSubstr("step 812"));
  }
  EXPECT_TRUE(eventually([&] { return children_of(rank0.console()).size() == 1; }));
}

/// Scheduling policies of a process's threads, oldest first; the thread sanitizer has one of its own.
std::vector<int> policies_of(pid_t pid) {
  std::vector<int> policies;
  std::error_code error;
  for (const auto& task :
       std::filesystem::directory_iterator("/proc/" + std::to_string(pid) + "/task", error))
    policies.push_back(::sched_getscheduler(std::atoi(task.path().filename().c_str())));
  return policies;
}

TEST(Host, ABusyChunkRunsAtIdlePriorityTheNextOneDoesNot) {
  const TemporaryFolder folder;
  FakeRank0 rank0(folder.path(), {"--limit", "idle_cpu_s=0.01"});
  TestClient client(rank0.socket());
  client.run("return 1");
  ASSERT_TRUE(eventually([&] { return children_of(rank0.console()).size() == 2; }));
  pid_t lua = 0;
  int eval = client.send({{"op", "eval"}, {"code", "while true do end"}});
  EXPECT_TRUE(eventually(
      [&] {
        for (const pid_t child : children_of(rank0.console()))
          if (const auto all = policies_of(child);
              all.size() > 1 && all.front() == SCHED_OTHER && all.back() == SCHED_IDLE)
            lua = child;
        return lua != 0;
      },
      30));
  client.send({{"op", "interrupt"}});
  EXPECT_EQ(client.answer(eval)["type"], "error");
  eval = client.send({{"op", "eval"}, {"code", "run.wait{ step = 900 }"}});
  EXPECT_TRUE(eventually([&] {
    const auto all = policies_of(lua);
    return all.size() > 1 && std::ranges::count(all, SCHED_OTHER) == std::ssize(all);
  }));
  if (!kSanitized) {
    EXPECT_THAT(read_file("/proc/" + std::to_string(lua) + "/limits"),
                testing::ContainsRegex("Max address space +335544320"));
  }
}

TEST(Host, HalfClosedClientsGetTheirAnswers) {
  const TemporaryFolder folder;
  FakeRank0 rank0(folder.path());
  TestClient client(rank0.socket());
  const int id = client.send({{"op", "eval"}, {"code", "return 6 * 7"}});
  ::shutdown(client.fd(), SHUT_WR);
  EXPECT_EQ(client.answer(id)["value"]["text"], "42");
  EXPECT_TRUE(client.read(2).is_null());
}

TEST(Host, EndsWithRank0) {
  const TemporaryFolder folder;
  FakeRank0 rank0(folder.path());
  TestClient client(rank0.socket());
  client.run("return 1");
  client.ask({{"op", "subscribe"}, {"topics", {"run"}}});
  const int eval = client.send({{"op", "eval"}, {"code", "run.wait{ step = 900 }"}});
  rank0.send({{"type", "end"}, {"result", {{"code", 0}, {"reason", "done"}}}});
  const auto children = children_of(rank0.console());
  EXPECT_THAT(client.answer(eval)["error"]["message"], HasSubstr("the run ended at step 812"));
  EXPECT_EQ(rank0.end(), 0);
  ASSERT_FALSE(client.others.empty());
  EXPECT_EQ(client.others[0]["data"]["result"]["reason"], "done");
  EXPECT_FALSE(std::filesystem::exists(rank0.socket()));
  for (const pid_t child : children)
    EXPECT_TRUE(eventually([&] {
      return read_file("/proc/" + std::to_string(child) + "/stat").find(") Z") != std::string::npos ||
             ::kill(child, 0) != 0;
    }));
}

TEST(Host, JournalIsRunnableAndSurvivesARestart) {
  const TemporaryFolder folder;
  Json reports = Json::array();
  {
    FakeRank0 rank0(folder.path());
    TestClient client(rank0.socket());
    client.run("log.every = 10 -- \x1b[31m");
    client.run("optim.set{ lr_scale = 0.5, betas = { 0.8, 0.9 } } ckpt.save{ tag = 'x' }");
    reports = client.ask({{"op", "orders"}})["value"];
  }
  const std::string first = read_file(folder.path() / "journal.lua");
  EXPECT_THAT(
      first,
      HasSubstr(" · log.every was 50\n--   log.every = 10 --  [31m\nat(12041, { log = { every = 10 } })\n"));
  EXPECT_THAT(first, HasSubstr("at(12041, function() set{ optim = { "));
  EXPECT_THAT(first, HasSubstr("; ckpt.save{ tag = \"x\" } end)\n"));
  // The console is started again; rank 0 has heard of one order that the journal hasn't.
  Json late = reports[0];
  late["id"] = late["applied"]["id"] = late["order"]["id"] = 3;
  std::reverse(reports.begin(), reports.end());
  reports.push_back(late);
  // Of a status that is older than the reports beside it.
  reports.push_back({{"state", "accepted"}, {"id", 1}, {"ref", reports[0]["ref"]}});
  FakeRank0 again(folder.path(), {}, reports);
  TestClient client(again.socket());
  const std::string second = read_file(folder.path() / "journal.lua");
  EXPECT_EQ(second.substr(0, first.size()), first);
  EXPECT_THAT(second.substr(first.size()), testing::StartsWith("-- order 3 "));
  const Json orders = client.ask({{"op", "orders"}})["value"];
  for (const Json& order : orders) EXPECT_EQ(order["state"], "applied") << order;
  EXPECT_EQ(client.run("local text = '' for line in journal():gmatch('[^\\n]+') do text = text .. line .. "
                       "'\\n' end return load(text) ~= nil"),
            "true");
  struct stat info {};
  ASSERT_EQ(::stat((folder.path() / "journal.lua").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600U);
}

TEST(Host, AJournalWithoutOrdersIsOneOfThisStart) {
  const TemporaryFolder folder;
  { const FakeRank0 rank0(folder.path()); }
  FakeRank0 again(folder.path());
  TestClient client(again.socket());
  client.run("log.every = 10");
  const std::string journal = read_file(folder.path() / "journal.lua");
  EXPECT_EQ(journal.find("-- start "), journal.rfind("-- start ")) << journal;
}

TEST(Host, ManyOrdersAheadWithALongSourceAreStillAnswered) {
  const TemporaryFolder folder;
  FakeRank0 rank0(folder.path(), {"--limit", "chunk_s=600"});  // 10 s are too few under a sanitizer and load
  TestClient client(rank0.socket());
  const std::string padding = "-- " + std::string(10000, 'x') + "\n";
  EXPECT_EQ(client.run(padding + "for s = 1000, 120000, 1000 do at(s, { log = { every = 5 } }) end"), "");
  EXPECT_EQ(client.run("mine = 7 return run.state"), "running");
  EXPECT_EQ(client.ask({{"op", "status"}})["value"]["orders"].size(), 120U);
  EXPECT_EQ(client.run("return mine, #orders() > 0"), "7\ntrue");
}

TEST(Host, ALongSourceIsCutBetweenCharacters) {
  const TemporaryFolder folder;
  FakeRank0 rank0(folder.path());
  rank0.refuse_orders = true;
  TestClient client(rank0.socket());
  std::string code = "log.every = 3 --  ";
  while (code.size() < 20000) code += "é";
  client.run(code);
  client.run(" " + code);  // one of them is cut inside a character otherwise
  EXPECT_EQ(client.run("return #orders()"), "2");
  EXPECT_EQ(client.ask({{"op", "orders"}})["type"], "result");
}

TEST(Host, AnInterruptedWaitForACallDisturbsNoLaterOne) {
  const TemporaryFolder folder;
  FakeRank0 rank0(folder.path(), {"--limit", "chunk_s=0.5"});
  rank0.hold_calls = true;
  TestClient client(rank0.socket());
  const int call = client.send({{"op", "eval"}, {"code", "mine = 7 eval.now():wait()"}});
  ASSERT_TRUE(client.hears("applied at step 12041"));
  client.send({{"op", "interrupt"}});
  EXPECT_THAT(client.answer(call)["error"]["message"], HasSubstr("interrupted"));
  const int step =
      client.send({{"op", "eval"}, {"code", "print('waits') run.wait{ step = 900 } return mine"}});
  ASSERT_TRUE(client.hears("waits"));
  rank0.finish_call(1);
  std::this_thread::sleep_for(std::chrono::seconds(4));  // more than a chunk has to end
  rank0.send_status(900);
  EXPECT_EQ(client.answer(step)["value"]["text"], "7");
}

TEST(Host, WaitingForAnOrderGivesWhatARuleGets) {
  const TemporaryFolder folder;
  FakeRank0 rank0(folder.path());
  TestClient client(rank0.socket());
  TestClient other(rank0.socket());
  const int wait = client.send({{"op", "eval"}, {"code", "local e = run.wait{ event = 'order' } return e"}});
  Json answer;
  ASSERT_TRUE(eventually([&] {  // it may not have begun to wait at the first
    other.run("log.every = 5");
    answer = client.answer(wait, 0.05);
    return !answer.is_null();
  }));
  const Json event = answer["value"]["value"];
  EXPECT_EQ(event["step"], 12041);
  EXPECT_EQ(event["session"], other.hello()["session"]);
  EXPECT_EQ(event["source"], "log.every = 5");
  EXPECT_EQ(event["moved"][0]["name"], "log.every");
}

TEST(Host, AViewerWithdrawsNobodysOrder) {
  const TemporaryFolder folder;
  const Json order = {
      {"id", 5}, {"at_step", 20000}, {"user", "ann"}, {"session", "s9"}, {"changes", Json::array()}};
  const Json report = {{"type", "order"},      {"id", 5},       {"ref", "x"},
                       {"state", "committed"}, {"step", 20000}, {"order", order}};
  FakeRank0 rank0(folder.path(), {"--role", "view"}, Json::array({report}));
  TestClient viewer(rank0.socket());
  EXPECT_THAT(viewer.run("orders[5]:cancel()"), HasSubstr("needs the role operate"));
  EXPECT_EQ(viewer.run("return orders[5].state"), "committed");
}

}  // namespace
}  // namespace footplate::test
