// Reductions over a libnccl that really reduces: two ranks as threads, with a simulated world for what goes
// between hosts.
#include "runtime/cuda/nccl_communicator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>

#include "runtime/comm/sim/sim_world.h"
#include "runtime/cuda/host_stream.h"
#include "tests/unit/comm/shares_cases.h"

namespace footplate {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

/// For what has to come, and mustn't be waited for for ever.
constexpr auto kPatience = 60s;
constexpr int kRanks = 2;

/// Work that came to nothing for whoever waits.
struct Lost : Work {
  bool done() const override { return true; }
  Result<void> wait(Clock::time_point /*deadline*/) override {
    return fail(ErrorKind::lost, "a rank was lost");
  }
};

/// Takes part in everything; deaf, it doesn't hear what comes of a reduction.
struct Host final : Communicator {
  explicit Host(std::unique_ptr<Communicator> the_inner) : inner(std::move(the_inner)) {}
  int rank() const override { return inner->rank(); }
  int world_size() const override { return inner->world_size(); }
  void set_chunk_elements(std::int64_t elements) override { inner->set_chunk_elements(elements); }
  std::unique_ptr<Work> all_reduce(Buffer buffer, ReduceOp op, const char* name) override {
    auto work = inner->all_reduce(buffer, op, name);
    if (!deaf) return work;
    static_cast<void>(work->wait());
    return std::make_unique<Lost>();
  }
  std::unique_ptr<Work> broadcast(Buffer buffer, int root, const char* name) override {
    return inner->broadcast(buffer, root, name);
  }
  std::unique_ptr<Work> all_gather(Buffer send, Buffer receive, const char* name) override {
    return inner->all_gather(send, receive, name);
  }
  std::unique_ptr<Work> barrier(const char* name) override { return inner->barrier(name); }
  std::unique_ptr<Work> reduce_scatter(Buffer buffer, ReduceOp op, const char* name) override {
    return inner->reduce_scatter(buffer, op, name);
  }
  std::unique_ptr<Work> all_gather_shares(Buffer buffer, const char* name) override {
    return inner->all_gather_shares(buffer, name);
  }
  std::unique_ptr<Work> pass_shares(Buffer buffer, int distance, const char* name) override {
    return inner->pass_shares(buffer, distance, name);
  }

  std::unique_ptr<Communicator> inner;
  bool deaf = false;
};

/// Notes which marks were made and followed.
struct NotingStream final : NcclStream {
  nccl_abi::Stream handle() override { return inner.handle(); }
  Mark mark() override {
    const auto made = std::make_shared<int>(++marks);
    return made;
  }
  Result<void> follow(const Mark& mark) override {
    if (breaks) return fail(ErrorKind::failed, "the device has failed");
    followed.push_back(*static_cast<const int*>(mark.get()));
    return {};
  }
  Result<bool> drain(std::chrono::microseconds at_most) override { return inner.drain(at_most); }
  bool has_failed() override { return device_failed; }
  std::span<float> scratch() override { return inner.scratch(); }

  HostStream inner;
  std::atomic<bool> device_failed{false};
  std::atomic<int> marks{0};
  std::vector<int> followed;  ///< communication thread's, or between operations
  std::atomic<bool> breaks{false};
};

/// What one rank has. Its NCCL operations have a queue of their own here.
struct TestRank {
  TestRank(SimWorld& world, const NcclLibrary& library, int rank, std::chrono::milliseconds connect)
      : host(world.communicator(rank, host_ledger, progress)),
        queue(ledger, progress),
        communicator({.library = library,
                      .stream = stream,
                      .host = host,
                      .queue = queue,
                      .bounds = {connect, kPatience, kPatience},
                      .rule_for = [this](std::size_t bytes) { return rule_for(bytes); },
                      .find_together = [this] { ++asked_for_others; }},
                     {}) {}

  Result<void> sum(std::vector<float>& numbers) {
    return communicator
        .all_reduce({numbers.data(), static_cast<std::int64_t>(numbers.size())}, ReduceOp::sum, "gradients")
        ->wait();
  }

  std::optional<TuningRule> rule_for(std::size_t bytes) {
    if (bytes >= rule_from) return rule;
    return std::nullopt;
  }

  TuningRule rule;
  std::size_t rule_from = TuningRule::kUnbounded;
  Progress progress;
  Ledger host_ledger, ledger;
  Host host;
  NotingStream stream;
  LaunchQueue queue;
  std::atomic<int> asked_for_others{0};
  NcclCommunicator communicator;
};

std::string said(const Result<void>& result) {
  return result ? "fine" : result.error().message;
}
std::string said(const Result<double>& result) {
  return result ? "fine" : result.error().message;
}

class CommunicatorTest : public testing::Test {
 protected:
  CommunicatorTest() {
    std::string pattern = testing::TempDir() + "nccl-XXXXXX";
    folder_ = ::mkdtemp(pattern.data());
    ::setenv("FOOTPLATE_STAND_IN_DIR", folder_.c_str(), 1);
    fault("");
    library_ = *NcclLibrary::open(FOOTPLATE_NCCL_STAND_IN);
  }
  ~CommunicatorTest() override {
    fault("");
    ranks_.clear();
    std::filesystem::remove_all(folder_);
  }

  static void fault(const std::string& text) { ::setenv("FOOTPLATE_STAND_IN_FAULT", text.c_str(), 1); }

  void make(std::chrono::milliseconds connect = kPatience, int ranks = kRanks) {
    ranks_.clear();
    world_ = std::make_unique<SimWorld>(ranks);
    for (int rank = 0; rank < ranks; ++rank)
      ranks_.push_back(std::make_unique<TestRank>(*world_, library_, rank, connect));
  }
  /// On all ranks at once.
  void on_all(const std::function<void(TestRank&, int)>& body) {
    std::vector<std::thread> threads;
    for (std::size_t rank = 0; rank < ranks_.size(); ++rank)
      threads.emplace_back([&, rank] { body(*ranks_[rank], static_cast<int>(rank)); });
    for (auto& thread : threads) thread.join();
  }
  void connect() {
    on_all([](TestRank& rank, int) { EXPECT_EQ(said(rank.communicator.connect()), "fine"); });
  }
  void expect_sums() {
    on_all([](TestRank& rank, int number) {
      std::vector<float> numbers(100'000, static_cast<float>(number + 1));
      EXPECT_EQ(said(rank.sum(numbers)), "fine");
      EXPECT_THAT(numbers, testing::Each(3.0F));
    });
  }
  std::string calls() const {
    std::stringstream text;
    text << std::ifstream(folder_ / ("calls-" + std::to_string(::getpid()) + ".txt")).rdbuf();
    return text.str();
  }

  std::unique_ptr<SimWorld> world_;
  std::filesystem::path folder_;
  NcclLibrary library_;
  std::vector<std::unique_ptr<TestRank>> ranks_;
};

TEST_F(CommunicatorTest, SumsInPiecesAndKeepsTheLedger) {
  make();
  connect();
  const auto before = ranks_[1]->ledger.newest();
  for (auto& rank : ranks_) rank->communicator.set_chunk_elements(30'000);
  expect_sums();
  const auto entry = ranks_[1]->ledger.find(before + 1);
  ASSERT_TRUE(entry);
  EXPECT_STREQ(entry->name, "gradients");
  EXPECT_EQ(entry->elements, 100'000);
  EXPECT_TRUE(entry->is_finished());
  on_all([](TestRank& rank, int) { EXPECT_TRUE(rank.communicator.finish()); });
  EXPECT_THAT(calls(), HasSubstr("destroy init=1 reductions=5 groups=5")) << "the probe, and four pieces";
}

TEST_F(CommunicatorTest, SharesAreSummedAndGatheredStripeByStripe) {
  make();
  connect();
  for (auto& rank : ranks_) rank->communicator.set_pieces_together(2);
  on_all([](TestRank& rank, int) {
    cases::expect_shares_are_summed_and_gathered(rank.communicator);
    EXPECT_TRUE(rank.communicator.finish());
  });
  EXPECT_THAT(calls(), HasSubstr("reductions=11 groups=9 "))
      << "the probe, and of both operations one stripe, one, and three by twos";
}

TEST_F(CommunicatorTest, SharesArePassedToTheNextRank) {
  for (const int ranks : {1, 3, 4, 2}) {
    make(kPatience, ranks);
    connect();
    for (auto& rank : ranks_) rank->communicator.set_pieces_together(2);
    on_all([](TestRank& rank, int) {
      cases::expect_shares_are_passed(rank.communicator);
      EXPECT_EQ(rank.ledger.current().kind, Collective::sendrecv);
      EXPECT_TRUE(rank.communicator.finish());
    });
  }
  EXPECT_THAT(calls(), HasSubstr("reductions=6 groups=5 tuned=Ring/Simple/2:1 "))
      << "the probe, one stripe, one, and three by twos; how they are sent isn't the tuner's";
}

TEST_F(CommunicatorTest, PiecesGoTogetherAsOneGroup) {
  make();
  connect();
  for (auto& rank : ranks_) {
    rank->communicator.set_chunk_elements(30'000);
    rank->communicator.set_pieces_together(3);
  }
  expect_sums();
  on_all([](TestRank& rank, int) { EXPECT_TRUE(rank.communicator.finish()); });
  EXPECT_THAT(calls(), HasSubstr("reductions=5 groups=3 ")) << "the probe, three pieces, and the fourth";
}

TEST_F(CommunicatorTest, ARuleGoesWithACallThatIsAloneInItsGroup) {
  ::setenv("FOOTPLATE_STAND_IN_VERSION", "23100", 1);
  library_ = *NcclLibrary::open(FOOTPLATE_NCCL_STAND_IN);
  ::unsetenv("FOOTPLATE_STAND_IN_VERSION");
  make();
  connect();
  for (auto& rank : ranks_) {
    rank->rule = {.algorithm = Algorithm::tree, .protocol = WireProtocol::simple, .channels = 4};
    rank->rule_from = 100'000 * sizeof(float);
  }
  expect_sums();  // one piece, of just that size
  for (auto& rank : ranks_) rank->communicator.set_chunk_elements(60'000);
  expect_sums();  // two, each smaller
  for (auto& rank : ranks_) {
    rank->rule_from = 0;
    rank->communicator.set_pieces_together(2);
  }
  expect_sums();  // NCCL does them as one: its tuner is asked
  on_all([](TestRank& rank, int) { EXPECT_TRUE(rank.communicator.finish()); });
  EXPECT_THAT(calls(), HasSubstr("reductions=6 groups=5 tuned=Ring/Simple/2:6 asked=TREE_SIMPLE/4:1\n"));
}

TEST_F(CommunicatorTest, WhatIsntAReductionStaysWithTheHost) {
  make();
  on_all([](TestRank& rank, int number) {
    std::int64_t value = number + 5;
    EXPECT_EQ(said(rank.communicator.broadcast({&value, 1, DataType::int64}, 1, "x")->wait()), "fine");
    EXPECT_EQ(value, 6);
    EXPECT_EQ(rank.host_ledger.newest(), 1u);
    EXPECT_EQ(rank.ledger.newest(), 0u);
  });
}

TEST_F(CommunicatorTest, ANewConfigurationIsTakenByAll) {
  make();
  connect();
  CommunicatorConfig config;
  config.max_ctas = 8;
  config.network = {"Socket"};
  on_all([&](TestRank& rank, int) { EXPECT_EQ(said(rank.communicator.renew(config)), "fine"); });
  expect_sums();
  EXPECT_THAT(calls(), HasSubstr("rank=0/2 id=segment-"));
  EXPECT_THAT(calls(), testing::ContainsRegex("rank=1/2 id=[^ ]* max_ctas=8 .* net=Socket "));
}

TEST_F(CommunicatorTest, OneThatFailsOnOneRankIsTakenBackByAll) {
  make();
  connect();
  fault("fail_init:rank=1:max_ctas=7");
  CommunicatorConfig config;
  config.max_ctas = 7;
  on_all([&](TestRank& rank, int) {
    const auto renewed = rank.communicator.renew(config);
    ASSERT_FALSE(renewed);
    EXPECT_EQ(renewed.error().kind, ErrorKind::refused);
    EXPECT_THAT(renewed.error().message,
                testing::AllOf(HasSubstr("those of before are back"), HasSubstr("rank 1: NCCL: making"),
                               HasSubstr("asked to fail")));
    EXPECT_LT(std::stod(renewed.error().message.substr(renewed.error().message.find("after ") + 6)), 30)
        << "the other one hears of it by NCCL";
  });
  expect_sums();
}

TEST_F(CommunicatorTest, OneThatIsNeverReadyIsTakenBackInTime) {
  make(500ms);
  connect();
  fault("never_ready:rank=0:max_ctas=7");
  CommunicatorConfig config;
  config.max_ctas = 7;
  on_all([&](TestRank& rank, int) {
    EXPECT_THAT(said(rank.communicator.renew(config)), HasSubstr("took too long"));
  });
  expect_sums();
}

TEST_F(CommunicatorTest, AnErrorOfNcclEndsTheOperationAndAsksForTheOthers) {
  make();
  connect();
  fault("error:rank=1");
  on_all([](TestRank& rank, int number) {
    std::vector<float> numbers(10, 1.0F);
    if (number == 0) return;  // it would hang until it is told
    const auto outcome = rank.sum(numbers);
    ASSERT_FALSE(outcome);
    EXPECT_EQ(outcome.error().kind, ErrorKind::lost);
    EXPECT_THAT(outcome.error().message,
                HasSubstr("rank 1: all_reduce of gradients failed: NCCL: a communicator"));
    EXPECT_EQ(rank.asked_for_others, 1);
    const auto next = rank.communicator.all_gather_shares({numbers.data(), 10}, "parameters")->wait();
    EXPECT_THAT(said(next), HasSubstr("all_reduce of gradients failed")) << "the queue is closed by it";
  });
}

/// One operation of a step that is tried again goes well each time, and another one fails each time.
TEST_F(CommunicatorTest, AnErrorThatComesAgainAtOneStepEndsTheRun) {
  make();
  connect();
  std::vector<ErrorKind> kinds;
  for (int again = 0; again < 5; ++again) {
    if (again == 1)
      for (const auto& rank : ranks_) rank->progress.at_step(1);
    expect_sums();
    fault("error:rank=1");
    on_all([&](TestRank& rank, int number) {
      std::vector<float> numbers(10, 1.0F);
      if (number == 1) kinds.push_back(rank.sum(numbers).error().kind);
    });
    fault("");
    on_all([&](TestRank& rank, int) {
      rank.queue.close({ErrorKind::lost, "communicators are made again"});
      EXPECT_TRUE(rank.queue.wait_idle(kPatience));
      const auto generation = static_cast<std::uint32_t>(again + 2);
      rank.queue.reopen(std::uint64_t{100} * generation, generation);
      EXPECT_EQ(said(rank.communicator.rejoin(generation, 100)), "fine");
    });
  }
  EXPECT_EQ(kinds, (std::vector{ErrorKind::lost, ErrorKind::lost, ErrorKind::lost, ErrorKind::lost,
                                ErrorKind::failed}));
}

/// It leaves, and they hear of that: finding together with it would fail on all.
TEST_F(CommunicatorTest, ARankWhoseDeviceHasFailedAsksForNobody) {
  make();
  connect();
  fault("error:rank=1");
  on_all([](TestRank& rank, int number) {
    std::vector<float> numbers(10, 1.0F);
    if (number == 0) return;
    rank.stream.device_failed = true;
    const auto outcome = rank.sum(numbers);
    ASSERT_FALSE(outcome);
    EXPECT_EQ(outcome.error().kind, ErrorKind::failed);
    EXPECT_EQ(rank.asked_for_others, 0);
  });
}

/// `work` hangs, until the world ends.
void expect_freed_by_a_loss(TestRank& rank, Work& work) {
  EXPECT_EQ(work.wait(std::chrono::steady_clock::now() + 50ms).error().kind, ErrorKind::timed_out);
  rank.queue.close({ErrorKind::lost, "a rank was lost"});
  const auto outcome = work.wait();
  ASSERT_FALSE(outcome);
  EXPECT_EQ(outcome.error().kind, ErrorKind::lost);
  EXPECT_TRUE(rank.queue.wait_idle(kPatience));
}

TEST_F(CommunicatorTest, AWorldThatEndsFreesAHangingReduction) {
  make();
  connect();
  fault("hang");
  on_all([](TestRank& rank, int number) {
    std::vector<float> numbers(10, 1.0F);
    auto work = rank.communicator.all_reduce({numbers.data(), 10}, ReduceOp::sum, "gradients");
    expect_freed_by_a_loss(rank, *work);
    EXPECT_EQ(rank.asked_for_others, 0) << number;
  });
  fault("");
  on_all([](TestRank& rank, int) {
    rank.queue.reopen(100, 2);
    EXPECT_EQ(said(rank.communicator.rejoin(2, 100)), "fine");
  });
  expect_sums();
}

TEST_F(CommunicatorTest, AWorldThatEndsFreesAHangingPassOfShares) {
  make();
  connect();
  fault("hang");
  on_all([](TestRank& rank, int) {
    std::vector<float> numbers(10, 1.0F);
    auto work = rank.communicator.pass_shares({numbers.data(), 10}, 1, "copies");
    expect_freed_by_a_loss(rank, *work);
  });
}

/// A rank was lost as some had heard that all agree, and others hadn't.
TEST_F(CommunicatorTest, AfterALossTheNewestConfigurationCounts) {
  make();
  connect();
  ranks_[0]->host.deaf = true;
  CommunicatorConfig config;
  config.max_ctas = 8;
  config.network = {"Socket"};
  on_all([&](TestRank& rank, int number) {
    EXPECT_EQ(rank.communicator.renew(config).has_value(), number == 1);
    rank.host.deaf = false;
    rank.queue.close({ErrorKind::lost, "a rank was lost"});
    rank.queue.reopen(100, 2);
    EXPECT_EQ(said(rank.communicator.rejoin(2, 100)), "fine");
  });
  expect_sums();
  const std::string last = calls().substr(calls().rfind("id="));
  EXPECT_THAT(last, testing::AllOf(HasSubstr("max_ctas=8 "), HasSubstr("net=Socket "))) << calls();
}

TEST_F(CommunicatorTest, AnInitThatNeverReturnsIsBounded) {
  make(300ms);
  fault("hang_init:rank=1");
  on_all([](TestRank& rank, int) {
    EXPECT_THAT(said(rank.communicator.connect()),
                HasSubstr("rank 1: NCCL: making communicators hasn't returned within 0.3 s"));
  });
  for (auto& rank : ranks_) static_cast<void>(rank.release());  // a call hangs in it
}

TEST_F(CommunicatorTest, EachReductionFollowsWhatWasComputedWhenItWasLaunched) {
  make();
  connect();
  expect_sums();
  expect_sums();
  for (const auto& rank : ranks_) {
    EXPECT_EQ(rank->stream.marks, 2);
    EXPECT_THAT(rank->stream.followed, testing::ElementsAre(1, 2));
  }
  on_all([](TestRank& rank, int) {
    rank.stream.breaks = true;
    std::vector<float> numbers(10, 1.0F);
    EXPECT_THAT(said(rank.sum(numbers)), HasSubstr("the device has failed"));
    EXPECT_THAT(numbers, testing::Each(1.0F));
  });
}

}  // namespace
}  // namespace footplate
