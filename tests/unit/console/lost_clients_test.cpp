// What becomes of the chunk of a client that is gone.

#include <gmock/gmock.h>

#include "fake_rank0.h"
#include "test_client.h"

namespace footplate::test {
namespace {

TEST(LostClients, TakeTheirLuaWithThem) {
  const TemporaryFolder folder;
  FakeRank0 rank0(folder.path());
  for (const char* code : {"return ('a'):rep(100000):find('a-a-a-a-b')",
                           "while true do pcall(run.wait, { step = 1000000 }) end", "while true do end"}) {
    TestClient client(rank0.socket());
    client.send({{"op", "eval"}, {"code", std::string("print('go') ") + code}});
    EXPECT_EQ(client.read()["text"], "go\n");
    ASSERT_TRUE(eventually([&] { return children_of(rank0.console()).size() == 2; }));
    client.close();
    EXPECT_TRUE(eventually([&] { return children_of(rank0.console()).size() == 1; })) << code;
  }
}

/// A client whose trial of optim.lr_scale = 2 is under way: nobody is left who would end it.
class LostTrials : public testing::Test {
 protected:
  LostTrials() : rank0(folder.path()), client(rank0.socket()) {
    client.send(
        {{"op", "eval"}, {"code", "log.every = 10 try{ set = { optim = { lr_scale = 2 } }, steps = 100 }"}});
    std::int64_t step = 812;
    EXPECT_TRUE(eventually([&] {
      rank0.send_status(step += 10);
      rank0.send_event("metrics", {{"step", step}, {"train/loss", 2.0}});
      return ordered_scale() == Value(2.0);
    }));
  }

  Value ordered_scale() const {
    Value last;
    for (const Order& order : rank0.orders())
      for (const Change& change : order.changes)
        if (change.name == "optim.lr_scale") last = change.value;
    return last;
  }

  TemporaryFolder folder;
  FakeRank0 rank0;
  TestClient client;
};

TEST_F(LostTrials, ArePutBack) {
  client.close();
  EXPECT_TRUE(eventually([&] { return ordered_scale() == Value(1.0); }));
  EXPECT_TRUE(eventually([&] { return children_of(rank0.console()).size() == 1; })) << "the spare";
}

/// As footplate exec does it at Ctrl-C: it interrupts, waits a moment and leaves, before the ranks have
/// agreed.
TEST_F(LostTrials, ArePutBackAfterAnInterrupt) {
  TestClient other(rank0.socket());
  ASSERT_TRUE(eventually([&] { return other.eval("return optim.lr_scale")["value"]["value"] == 2; }));
  rank0.hold_orders = true;
  client.send({{"op", "interrupt"}});
  ASSERT_TRUE(eventually([&] { return ordered_scale() == Value(1.0); }));
  client.close();
  TestClient after(rank0.socket());
  after.ask({{"op", "ping"}});  // by now the console knows that the client is gone
  rank0.apply_held(rank0.orders().back().id);
  EXPECT_TRUE(eventually([&] { return children_of(rank0.console()).size() == 2; }))
      << "the other's, the spare";
  EXPECT_TRUE(rank0.lines("withdraw").empty());
}

}  // namespace
}  // namespace footplate::test
