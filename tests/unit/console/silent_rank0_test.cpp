// What can be done where rank 0 answers nothing.

#include <gmock/gmock.h>

#include "fake_rank0.h"
#include "test_client.h"

namespace footplate::test {
namespace {

using testing::HasSubstr;

TEST(SilentRank0, AnInterruptEndsAQuestionToItsRanks) {
  const TemporaryFolder folder;
  FakeRank0 rank0(folder.path());
  TestClient client(rank0.socket());
  client.run("mine = 7");
  std::size_t asked = 0;
  for (const char* code : {"ranks.stacks()", "comm.report()", "comm.dump()"}) {
    const int eval = client.send({{"op", "eval"}, {"code", code}});
    ++asked;
    ASSERT_TRUE(eventually([&] { return rank0.lines("ranks").size() == asked; })) << code;
    client.send({{"op", "interrupt"}});
    EXPECT_THAT(client.answer(eval)["error"]["message"], testing::EndsWith("interrupted")) << code;
    EXPECT_EQ(client.run("return mine"), "7") << code;
  }
}

TEST(SilentRank0, ARuleThatAsksTheRanksEndsWithItsBudget) {
  const TemporaryFolder folder;
  FakeRank0 rank0(folder.path());
  TestClient client(rank0.socket());
  client.run("every(100, { budget_ms = 50 }, function() while true do pcall(comm.report) end end)");
  client.run("every(100, function() log.every = 20 end)");
  rank0.send_status(900);
  ASSERT_TRUE(eventually([&] { return rank0.orders().size() == 1; }));
  const auto failed = [&] {
    std::string text;
    for (const Json& line : rank0.lines("publish")) text += line["data"].value("text", "");
    return text;
  };
  EXPECT_TRUE(eventually([&] {
    return failed().find("stopped: a rule may run for budget_ms = 50") != std::string::npos;
  })) << failed();
}

TEST(SilentRank0, AnOrderWithoutANumberIsWithdrawn) {
  const TemporaryFolder folder;
  FakeRank0 rank0(folder.path());
  TestClient client(rank0.socket()), other(rank0.socket());
  client.run("return 1");
  rank0.deaf = true;
  const int unheard = rank0.unheard;
  const auto order = [&](int every) {
    return client.send({{"op", "set"}, {"changes", {{"log.every", every}}}, {"timeout_s", 60}});
  };
  const int first = order(10);
  ASSERT_TRUE(eventually([&] { return rank0.unheard > unheard; }));
  rank0.deaf = false;
  EXPECT_EQ(other.run("return orders[0].state"), "sent");
  EXPECT_EQ(other.run("return orders[0]:cancel()"), "true");
  EXPECT_EQ(client.answer(first)["value"]["state"], "withdrawn");
  EXPECT_THAT(other.run("return orders[0]"), HasSubstr("there is no order 0"));
  rank0.deaf = true;
  const int before = rank0.unheard;
  order(20);
  order(30);
  ASSERT_TRUE(eventually([&] { return rank0.unheard >= before + 2; }));
  EXPECT_THAT(other.run("return orders[0]"), HasSubstr("2 orders have no number yet"));
}

}  // namespace
}  // namespace footplate::test
