// Job scripts, from end to end: what footplate run leaves in RUN/jobs, a fake rank 0, a real console.

#include <gmock/gmock.h>
#include <sched.h>
#include <signal.h>
#include <sys/wait.h>

#include <fstream>
#include <sstream>

#include "fake_rank0.h"
#include "test_client.h"

namespace footplate::test {
namespace {

using testing::HasSubstr;

std::string read_file(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

class Jobs : public testing::Test {
 protected:
  void make(const std::string& code, bool unattended = true, const Json& arguments = Json::array()) {
    std::filesystem::create_directories(folder.path() / "jobs");
    std::ofstream(folder.path() / "jobs" / "1-watch.lua") << code;
    const Json job = {
        {"name", "watch"}, {"file", "1-watch.lua"}, {"path", "scripts/watch.lua"}, {"arguments", arguments}};
    std::ofstream(folder.path() / "jobs" / "jobs.json")
        << Json{{"unattended", unattended}, {"jobs", Json::array({job})}}.dump();
    start();
  }
  void start(const Json& reports = Json::array(), const Json& hello = Json::object(),
             const std::vector<std::string>& arguments = {}) {
    rank0.emplace(folder.path(), arguments, reports, hello);
    client.emplace(rank0->socket());
  }
  bool ordered_now(const std::string& session, std::size_t count = 1) const {
    std::size_t found = 0;
    for (const Order& order : rank0->orders()) found += order.session == session ? 1 : 0;
    return found >= count;
  }
  bool ordered(const std::string& session, std::size_t count = 1) const {
    return eventually([&] { return ordered_now(session, count); });
  }
  bool says_now(const std::string& part) const {
    for (const Json& line : rank0->lines("publish"))
      if (line["data"].value("text", "").find(part) != std::string::npos) return true;
    return false;
  }
  bool says(const std::string& part) const {
    return eventually([&] { return says_now(part); });
  }
  bool state_is(const std::string& state) {
    return eventually([&] { return client->eval("return jobs()")["value"]["value"][0]["state"] == state; });
  }
  bool registered(std::size_t count) {
    return eventually([&] { return client->eval("return rules()")["value"]["value"].size() >= count; });
  }
  pid_t job_process() const { return std::stoi(read_file(folder.path() / "pid")); }

  TemporaryFolder folder;
  std::optional<FakeRank0> rank0;
  std::optional<TestClient> client;
};

TEST_F(Jobs, AScriptWaitsOrdersPrintsAndEnds) {
  make(
      "print('begins', arg[1], run.resumed)\nlog.every = 5\nrun.wait{ step = 900 }\noptim.lr_scale = 0.5\n"
      "local e = run.wait{ event = 'eval' }\nprint(e.loss)\nstore.done = true",
      true, {"x y"});
  ASSERT_TRUE(ordered("job:watch"));
  EXPECT_EQ(client->run("for name, job in pairs(jobs) do return name .. ' ' .. job.job end"), "watch watch");
  EXPECT_TRUE(says("begins\tx y\tfalse"));
  rank0->send_status(900);
  ASSERT_TRUE(ordered("job:watch", 2));
  EXPECT_TRUE(eventually([&] {
    rank0->send_event("eval", {{"step", 900}, {"loss", 1.25}});
    return rank0->orders().size() == 3;
  }));
  ASSERT_TRUE(state_is("done"));
  EXPECT_THAT(read_file(folder.path() / "log" / "job-watch.log"), HasSubstr("begins\tx y\tfalse\n"));
  EXPECT_EQ(client->run("return store.done"), "true");
  EXPECT_EQ(rank0->orders().at(0).user, rank0->orders().at(2).user);
}

TEST_F(Jobs, ItsRulesRunWhileItWaitsAndAfterItHasEnded) {
  make(
      "local count = 0\nevery(100, function() count = count + 1 log.every = count end)\nrun.wait{ step = "
      "1000 }\n"
      "eval.every = count\nreturn");
  ASSERT_TRUE(registered(1));
  rank0->send_status(900);
  ASSERT_TRUE(ordered("rule 1"));
  rank0->send_status(1000);
  ASSERT_TRUE(ordered("job:watch"));
  ASSERT_TRUE(ordered("rule 1", 2));
  ASSERT_TRUE(state_is("rules"));
  rank0->send_status(1100);
  ASSERT_TRUE(ordered("rule 1", 3));
  EXPECT_EQ(rank0->orders().back().changes.at(0).value, Value(std::int64_t{3}));
}

TEST_F(Jobs, ANewConsoleRunsItAgainResumed) {
  make(
      "if not run.resumed then log.every = 5 end\nlocal f = assert(io.open(arg[1], 'w')) f:write(run.resumed "
      "and 'again' "
      "or 'first') f:close()\nevery(100, function() eval.every = 7 end)",
      true, {(folder.path() / "note").string()});
  ASSERT_TRUE(ordered("job:watch"));
  ASSERT_TRUE(state_is("rules"));
  EXPECT_EQ(read_file(folder.path() / "note"), "first");
  client.reset();
  rank0->end();
  start();
  ASSERT_TRUE(registered(1));
  rank0->send_status(900);
  ASSERT_TRUE(ordered("rule 2"));
  EXPECT_EQ(read_file(folder.path() / "note"), "again");
  EXPECT_FALSE(rank0->orders().front().session == "job:watch");
}

constexpr const char* kLastsForEver =
    "every(100, function() log.every = log.every + 1 end)\nprint('up', run.resumed)\nwhile true do run.wait{ "
    "seconds = 0.01 } end";

TEST_F(Jobs, OneIsEndedWithItsRulesAndStaysSo) {
  make(kLastsForEver);
  ASSERT_TRUE(says("up\tfalse"));
  ASSERT_TRUE(registered(1));
  EXPECT_EQ(client->run("return jobs.watch.state"), "running");
  EXPECT_THAT(client->run("jobs.wacth:off()"), HasSubstr("did you mean jobs.watch?"));
  EXPECT_THAT(client->run("jobs.watch.of()"), HasSubstr("a job has :off(), .job"));
  client->run("jobs.watch:off()");
  EXPECT_EQ(client->run("return jobs.watch.state"), "stopped");
  EXPECT_EQ(client->run("return rules[1].state"), "off");
  EXPECT_TRUE(says("stopped by "));
  EXPECT_THAT(client->run("jobs.watch:off()"), HasSubstr("job watch has ended already: stopped"));
  rank0->send_status(900);
  client->eval("return 1");  // the status has been looked at by now
  EXPECT_TRUE(rank0->orders().empty());
  client.reset();
  rank0->end();
  start();
  EXPECT_EQ(client->run("return jobs.watch.state"), "stopped");
  EXPECT_TRUE(rank0->lines("publish").empty());
}

TEST_F(Jobs, AStoppedOneRunsAgainWhereItIsNamedAgain) {
  make(kLastsForEver);
  ASSERT_TRUE(says("up\tfalse"));
  client->run("jobs.watch:off()");
  client.reset();
  rank0->end();
  Json plan = Json::parse(read_file(folder.path() / "jobs" / "jobs.json"));
  plan["given"] = 1;
  std::ofstream(folder.path() / "jobs" / "jobs.json") << plan.dump();
  start();
  EXPECT_TRUE(says("up\ttrue"));
}

TEST_F(Jobs, AChunkThatRunsAgainForItsRulesStopsNoJob) {
  make("run.wait{ step = 100000 }");
  ASSERT_TRUE(state_is("running"));
  client.reset();
  rank0->end();
  start(Json::array(), Json::object(), {"--role", "operate"});
  ASSERT_TRUE(state_is("running"));
  EXPECT_EQ(client->run("print(pcall(function() jobs.watch:off() end)) every(1000, print)"), "");
  EXPECT_THAT(client->others.at(0)["text"].get<std::string>(), testing::HasSubstr("needs the role admin"));
  ASSERT_TRUE(registered(1));
  EXPECT_TRUE(state_is("running"));
}

TEST_F(Jobs, DeadRulesAreForgotten) {
  make(
      "every(7, print) for i = 1, 300 do every(1000, print):off() end print('done') run.wait{ step = 100000 "
      "}");
  ASSERT_TRUE(says("done"));
  EXPECT_TRUE(
      eventually([&] { return client->run("return #rules() <= 101, rules[1].state") == "true\non"; }));
}

TEST_F(Jobs, ItsRulesAreBounded) {
  make(
      "local ok, why = pcall(function() for i = 1, 300 do every(1000, print) end end)\nprint(ok, why)\n"
      "rules[1]:off()\nevery(7, print)\nprint('one more')\nrun.wait{ step = 100000 }");
  EXPECT_TRUE(says("the run has 256 rules"));
  EXPECT_TRUE(says("one more"));
  EXPECT_EQ(client->run("return #rules()"), "257");
}

TEST_F(Jobs, ItsStartRuleRunsOncePerStartOfTheRun) {
  make("on('start', function(e) print('began', e.step, e.resumed) end) every(100, function() end)");
  EXPECT_TRUE(says("began\t"));
  client.reset();
  rank0->end();
  start();
  ASSERT_TRUE(registered(1));
  ASSERT_TRUE(state_is("rules"));
  client->eval("return 1");
  EXPECT_FALSE(says_now("began\t")) << "the console is new, the run isn't";
}

TEST_F(Jobs, OneEndsItself) {
  make("print('up')\nfor i = 1, 3 do run.wait{ seconds = 0.01 } end\njobs.watch:off()\nprint('still there')");
  ASSERT_TRUE(says("stopped by "));
  ASSERT_TRUE(state_is("stopped"));
  EXPECT_FALSE(says_now("still there"));
}

TEST_F(Jobs, ProgramsWithoutLuaEndJobsAndRules) {
  make(kLastsForEver);
  ASSERT_TRUE(registered(1));
  const Json rules = client->ask({{"op", "rules"}})["value"];
  ASSERT_EQ(rules.size(), 1U);
  EXPECT_EQ(client->ask({{"op", "rule_off"}, {"rule", rules[0]["rule"]}})["type"], "result");
  EXPECT_EQ(client->ask({{"op", "rules"}})["value"][0]["state"], "off");
  EXPECT_EQ(client->ask({{"op", "jobs"}})["value"][0]["state"], "running");
  EXPECT_EQ(client->ask({{"op", "store"}})["value"], Json::object());
  EXPECT_EQ(client->ask({{"op", "role"}, {"role", "operate"}})["type"], "result");
  const Json refused = client->ask({{"op", "job_off"}, {"job", "watch"}});
  EXPECT_EQ(refused["error"]["kind"], "refused");
  TestClient other(rank0->socket());
  EXPECT_EQ(other.ask({{"op", "job_off"}, {"job", "watch"}})["type"], "result");
  EXPECT_EQ(other.ask({{"op", "jobs"}})["value"][0]["state"], "stopped");
}

TEST_F(Jobs, AKilledProcessStartsAgain) {
  make(
      "local f = io.open('/proc/self/stat') local pid = f:read('n') f:close()\nf = io.open(arg[1], 'w') "
      "f:write(pid) "
      "f:close()\nevery(100, function() log.every = 9 end)\nprint('up', run.resumed)\nrun.wait{ step = 5000 "
      "}",
      true, {(folder.path() / "pid").string()});
  ASSERT_TRUE(says("up\tfalse"));
  ::kill(job_process(), SIGKILL);
  ASSERT_TRUE(says("up\ttrue"));
  ASSERT_TRUE(registered(1));
  rank0->send_status(900);
  ASSERT_TRUE(ordered("rule 2"));
  EXPECT_TRUE(says("job watch is started again"));
}

TEST_F(Jobs, AKilledProcessOfAJobThatHasEndedComesBackForItsRules) {
  make(
      "local f = io.open('/proc/self/stat') local pid = f:read('n') f:close()\nf = io.open(arg[1], 'w') "
      "f:write(pid) "
      "f:close()\nevery(100, function() log.every = 9 end)",
      true, {(folder.path() / "pid").string()});
  ASSERT_TRUE(state_is("rules"));
  ::kill(job_process(), SIGKILL);
  ASSERT_TRUE(says("job watch is started again"));
  ASSERT_TRUE(state_is("rules"));
  rank0->send_status(900);
  ASSERT_TRUE(ordered("rule 2"));
}

TEST_F(Jobs, OneWhoseRulesAreDoneIsDoneAndNotRunAgain) {
  make("log.every = 5\nat(12100, function() eval.every = 7 end)");
  ASSERT_TRUE(ordered("job:watch"));
  ASSERT_TRUE(state_is("rules"));
  rank0->send_status(12100);
  ASSERT_TRUE(ordered("rule 1"));
  ASSERT_TRUE(state_is("done"));
  client.reset();
  rank0->end();
  start();
  ASSERT_TRUE(state_is("done"));
  EXPECT_TRUE(rank0->orders().empty());
}

/// The run goes on, and rank 0 starts another console: nothing has stopped, and no job has failed.
TEST_F(Jobs, ASignalEndsTheConsoleAlone) {
  make("log.every = 5\non('stop', function() eval.every = 7 end)\nrun.wait{ step = 90000 }");
  ASSERT_TRUE(registered(1));
  client.reset();
  ::kill(rank0->console(), SIGTERM);
  siginfo_t ended{};
  ASSERT_EQ(::waitid(P_PID, static_cast<id_t>(rank0->console()), &ended, WEXITED | WNOWAIT), 0);
  EXPECT_EQ(rank0->end(), 0);
  EXPECT_FALSE(ordered_now("rule 1"));
  start();
  ASSERT_TRUE(registered(1));
  ASSERT_TRUE(state_is("running"));
}

TEST_F(Jobs, AnErrorStopsAnUnattendedRun) {
  make("run.wait{ step = 900 }\nlocal x = nil + 1");
  rank0->send_status(900);
  ASSERT_TRUE(eventually([&] { return !rank0->orders().empty(); }));
  const Order order = rank0->orders().at(0);
  EXPECT_EQ(order.calls.at(0).action, "run.stop");
  EXPECT_THAT(order.calls.at(0).arguments["error"].get<std::string>(), HasSubstr("scripts/watch.lua:2: "));
}

TEST_F(Jobs, AnErrorIsAWarningWhereSomebodyLooks) {
  make("every(100, function() end) error('boom')", /*unattended=*/false);
  ASSERT_TRUE(says("job watch failed: "));
  ASSERT_TRUE(state_is("failed"));
  EXPECT_TRUE(rank0->orders().empty());
  EXPECT_EQ(client->run("return rules[1].state"), "off");
}

TEST_F(Jobs, ABusyScriptRunsAtIdlePriorityAndStopWritesItsLastWords) {
  make(
      "on('stop', function() local f = io.open(arg[1], 'w') f:write('stopped') f:close() "
      "end)\nprint('busy')\n"
      "while run.step < 900 do for i = 1, 1e6 do end end\nprint('through')",
      true, {(folder.path() / "note").string()});
  ASSERT_TRUE(says("busy"));
  EXPECT_TRUE(eventually([&] {
    for (const pid_t child : children_of(rank0->console()))
      for (const auto& task : std::filesystem::directory_iterator("/proc/" + std::to_string(child) + "/task"))
        if (::sched_getscheduler(std::atoi(task.path().filename().c_str())) == SCHED_IDLE) return true;
    return false;
  }));
  rank0->send_status(900);
  ASSERT_TRUE(says("through"));
  rank0->send({{"type", "end"}, {"result", {{"code", 0}, {"reason", "done"}}}});
  EXPECT_EQ(rank0->end(), 0);
  EXPECT_EQ(read_file(folder.path() / "note"), "stopped");
}

}  // namespace
}  // namespace footplate::test
