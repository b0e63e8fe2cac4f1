// The life of NCCL communicators over a library that records, fails and hangs on demand.
#include <dirent.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "nccl_stub.h"
#include "runtime/cuda/nccl_communicators.h"
#include "runtime/schema/schema_table.h"

namespace footplate {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;
using Group = NcclCommunicators::Group;

/// For what has to come, and mustn't be waited for for ever.
constexpr auto kLong = 60s;
/// For what never comes.
constexpr auto kShort = 50ms;

std::string library_path() {
  return FOOTPLATE_NCCL_STUB;
}

int entries_of(const char* folder) {
  int count = 0;
  if (DIR* open = ::opendir(folder)) {
    while (::readdir(open) != nullptr) ++count;
    ::closedir(open);
  }
  return count;
}

class CommunicatorsTest : public testing::Test {
 protected:
  CommunicatorsTest() {
    stub_reset();
    const auto opened = NcclLibrary::open(library_path());
    EXPECT_TRUE(opened) << opened.error().message;
    library_ = *opened;
  }
  ~CommunicatorsTest() override { stub_reset(); }

  static NcclCommunicators::Bounds patient() { return {kLong, kLong, kLong}; }
  static NcclCommunicators::Bounds impatient() { return {kShort, kShort, kShort}; }

  static std::vector<Group> alone(const NcclCommunicators& on, int groups = 1) {
    std::vector<Group> list;
    for (int i = 0; i < groups; ++i) list.push_back({"data parallel", *on.new_id(), 0, 1});
    return list;
  }
  static NcclCommunicators::Operation operation(std::size_t group, float* data, std::size_t elements) {
    NcclCommunicators::Operation one;
    one.group = group;
    one.send = one.receive = data;
    one.elements = elements;
    return one;
  }

  std::string said(const Result<void>& result) { return result ? "fine" : result.error().message; }

  NcclLibrary library_;
  CommunicatorConfig config_;
};

TEST_F(CommunicatorsTest, AreMadeInOneGroupAndNeverBlock) {
  NcclCommunicators communicators(library_, patient());
  EXPECT_EQ(said(communicators.connect(alone(communicators, 2), config_)), "fine");
  EXPECT_TRUE(communicators.connected());
  EXPECT_EQ(communicators.generation(), 1u);
  EXPECT_STREQ(stub_calls(),
               "ncclGetUniqueId ncclGetUniqueId ncclGroupStart ncclCommInitRankConfig:0/1 "
               "ncclCommInitRankConfig:0/1 ncclGroupEnd");
}

TEST_F(CommunicatorsTest, RanksMeetByTheId) {
  NcclCommunicators first(library_, patient());
  NcclCommunicators second(library_, patient());
  const auto id = *first.new_id();
  std::thread other([&] { EXPECT_EQ(said(second.connect({{"data parallel", id, 1, 2}}, config_)), "fine"); });
  EXPECT_EQ(said(first.connect({{"data parallel", id, 0, 2}}, config_)), "fine");
  other.join();
  EXPECT_EQ(stub_live(), 2);
}

TEST_F(CommunicatorsTest, AbortIsOneGroup) {
  NcclCommunicators communicators(library_, patient());
  ASSERT_TRUE(communicators.connect(alone(communicators, 3), config_));
  EXPECT_EQ(said(communicators.abort()), "fine");
  EXPECT_THAT(stub_calls(),
              testing::EndsWith("ncclGroupStart ncclCommAbort ncclCommAbort ncclCommAbort ncclGroupEnd"));
  EXPECT_EQ(stub_live(), 0);
  EXPECT_FALSE(communicators.connected());
  EXPECT_EQ(said(communicators.abort()), "fine") << "nothing is left to abort";
}

TEST_F(CommunicatorsTest, AnOrderlyEndFinalizesAllBeforeItDestroysAny) {
  NcclCommunicators communicators(library_, patient());
  ASSERT_TRUE(communicators.connect(alone(communicators, 2), config_));
  EXPECT_EQ(said(communicators.finish()), "fine");
  EXPECT_THAT(stub_calls(),
              testing::EndsWith("ncclCommFinalize ncclCommFinalize ncclGroupStart ncclCommDestroy "
                                "ncclCommDestroy ncclGroupEnd"));
  EXPECT_EQ(stub_live(), 0);
}

TEST_F(CommunicatorsTest, WhatCantBeFinalizedIsAborted) {
  NcclCommunicators communicators(library_, patient());
  ASSERT_TRUE(communicators.connect(alone(communicators), config_));
  stub_fault("ncclCommFinalize", "fail");
  EXPECT_EQ(said(communicators.finish()), "fine");
  EXPECT_THAT(stub_calls(), testing::EndsWith("ncclGroupStart ncclCommAbort ncclGroupEnd"));
  EXPECT_EQ(stub_live(), 0);
}

TEST_F(CommunicatorsTest, ARebuildAbortsFirstAndTakesANewId) {
  NcclCommunicators communicators(library_, patient());
  ASSERT_TRUE(communicators.connect(alone(communicators), config_));
  const auto next = alone(communicators);
  EXPECT_EQ(said(communicators.rebuild(next, config_)), "fine");
  EXPECT_THAT(stub_calls(), testing::EndsWith("ncclGetUniqueId ncclGroupStart ncclCommAbort ncclGroupEnd "
                                              "ncclGroupStart ncclCommInitRankConfig:0/1 ncclGroupEnd"));
  EXPECT_EQ(communicators.generation(), 2u);
  EXPECT_EQ(stub_live(), 1);
  EXPECT_THAT(said(communicators.connect(next, config_)), HasSubstr("abort() comes first"));
}

TEST_F(CommunicatorsTest, ReductionsAreCoalesced) {
  NcclCommunicators communicators(library_, patient());
  ASSERT_TRUE(communicators.connect(alone(communicators, 2), config_));
  float data[4] = {};
  const NcclCommunicators::Operation reductions[] = {operation(0, data, 4), operation(1, data, 3),
                                                     operation(0, data, 2)};
  EXPECT_EQ(said(communicators.enqueue(reductions, nullptr)), "fine");
  EXPECT_THAT(
      stub_calls(),
      testing::EndsWith("ncclGroupStart ncclAllReduce:4 ncclAllReduce:3 ncclAllReduce:2 ncclGroupEnd"));
  const NcclCommunicators::Operation wrong[] = {operation(2, data, 4)};
  EXPECT_THAT(said(communicators.enqueue(wrong, nullptr)), HasSubstr("group 2 of 2"));
  stub_fault("ncclAllReduce", "fail");
  EXPECT_THAT(said(communicators.enqueue(reductions, nullptr)),
              HasSubstr("all_reduce failed: unhandled system error (the stub says so)"));
  EXPECT_THAT(stub_calls(), testing::EndsWith("ncclAllReduce:4 ncclGroupEnd")) << "the group is closed";
}

TEST_F(CommunicatorsTest, ASendAndItsReceiveAreInOneGroup) {
  NcclCommunicators communicators(library_, patient());
  ASSERT_TRUE(communicators.connect(alone(communicators), config_));
  float data[8] = {};
  NcclCommunicators::Operation passes[] = {operation(0, data, 4), operation(0, data + 4, 3)};
  for (auto& one : passes) {
    one.kind = Collective::sendrecv;
    one.to = 2;
    one.from = 5;
  }
  EXPECT_EQ(said(communicators.enqueue(passes, nullptr)), "fine");
  EXPECT_THAT(stub_calls(), testing::EndsWith("ncclGroupStart ncclSend:4:to:2 ncclRecv:4:from:5 "
                                              "ncclSend:3:to:2 ncclRecv:3:from:5 ncclGroupEnd"));
  stub_fault("ncclSend", "fail");
  EXPECT_THAT(said(communicators.enqueue(passes, nullptr)), HasSubstr("sendrecv failed: unhandled"));
  EXPECT_THAT(stub_calls(), testing::EndsWith("ncclSend:4:to:2 ncclGroupEnd")) << "nothing is received";
}

TEST_F(CommunicatorsTest, ALibraryThatTakesARuleWithTheCallIsGivenIt) {
  EXPECT_EQ(library_.all_reduce_with_config, nullptr)
      << "2.28.9 has a function of that name in the stub alone";
  stub_version(nccl_abi::kFirstWithCollectiveConfig);
  for (const NcclLibrary& library : {library_, *NcclLibrary::open(library_path())}) {
    NcclCommunicators communicators(library, patient());
    ASSERT_TRUE(communicators.connect(alone(communicators), config_));
    float data[4] = {};
    nccl_abi::CollectiveConfig config;
    config.selection = "RING";
    config.max_ctas = 4;
    NcclCommunicators::Operation with[] = {operation(0, data, 4)};
    with[0].config = &config;
    const NcclCommunicators::Operation without[] = {operation(0, data, 3)};
    EXPECT_EQ(said(communicators.enqueue(with, nullptr)), "fine");
    EXPECT_EQ(said(communicators.enqueue(without, nullptr)), "fine");
    EXPECT_THAT(stub_calls(),
                testing::EndsWith(std::string("ncclGroupStart ") +
                                  (library.version > library_.version ? "ncclAllReduceConfig:4:RING:4"
                                                                      : "ncclAllReduce:4") +
                                  " ncclGroupEnd ncclGroupStart ncclAllReduce:3 ncclGroupEnd"));
  }
}

TEST_F(CommunicatorsTest, ErrorsAreSeenWhereTheyAreAskedFor) {
  NcclCommunicators communicators(library_, patient());
  ASSERT_TRUE(communicators.connect(alone(communicators), config_));
  EXPECT_FALSE(communicators.error());
  stub_break();
  const auto until = std::chrono::steady_clock::now() + kLong;
  while (!communicators.error() && std::chrono::steady_clock::now() < until) std::this_thread::yield();
  ASSERT_TRUE(communicators.error());
  EXPECT_THAT(communicators.error()->message, HasSubstr("remote process exited"));
}

TEST_F(CommunicatorsTest, AFailedInitFreesWhatWasMade) {
  NcclCommunicators communicators(library_, patient());
  const auto groups = alone(communicators);
  stub_fault("ncclGroupEnd", "fail");
  EXPECT_THAT(said(communicators.connect(groups, config_)), HasSubstr("making communicators failed"));
  EXPECT_EQ(stub_live(), 0);
  EXPECT_FALSE(communicators.connected());
  stub_fault("ncclGroupEnd", "");
  EXPECT_EQ(said(communicators.connect(groups, config_)), "fine") << "the next one may be";
}

TEST_F(CommunicatorsTest, ARankThatNeverComesIsGivenUpOn) {
  NcclCommunicators communicators(library_, {kShort, kLong, kLong});
  const auto id = *communicators.new_id();
  EXPECT_THAT(said(communicators.connect({{"data parallel", id, 0, 2}}, config_)),
              HasSubstr("making communicators (data parallel) took too long: another rank hasn't come"));
  EXPECT_THAT(stub_calls(), testing::EndsWith("ncclCommAbort ncclGroupEnd"));
  EXPECT_EQ(stub_live(), 0);
  EXPECT_FALSE(communicators.stuck());
}

TEST_F(CommunicatorsTest, AnInitThatNeverReturnsIsBounded) {
  NcclCommunicators communicators(library_, impatient());
  const auto groups = alone(communicators);
  stub_fault("ncclCommInitRankConfig", "hang");
  EXPECT_THAT(said(communicators.connect(groups, config_)), HasSubstr("hasn't returned within 0.05 s"));
  EXPECT_TRUE(communicators.stuck());
  EXPECT_THAT(said(communicators.connect(groups, config_)), HasSubstr("an earlier call has never returned"));
}

TEST_F(CommunicatorsTest, AnAbortThatNeverReturnsIsBounded) {
  NcclCommunicators communicators(library_, {kLong, kShort, kLong});
  ASSERT_TRUE(communicators.connect(alone(communicators), config_));
  stub_fault("ncclGroupEnd", "hang");
  EXPECT_THAT(said(communicators.abort()),
              HasSubstr("abort hasn't returned within 0.05 s; this rank has to end"));
  EXPECT_TRUE(communicators.stuck());
  EXPECT_FALSE(communicators.connected());
}

TEST_F(CommunicatorsTest, FiftySwapsLeakNothing) {
  NcclCommunicators communicators(library_, patient());
  ASSERT_TRUE(communicators.connect(alone(communicators, 2), config_));
  const int threads = entries_of("/proc/self/task");
  const int descriptors = entries_of("/proc/self/fd");
  for (int i = 0; i < 50; ++i)
    ASSERT_EQ(said(communicators.rebuild(alone(communicators, 2), config_)), "fine");
  EXPECT_EQ(communicators.generation(), 51u);
  EXPECT_EQ(stub_live(), 2);
  EXPECT_EQ(stub_misuse(), 0) << "a communicator was asked after it was freed";
  EXPECT_LE(entries_of("/proc/self/task"), threads);
  EXPECT_EQ(entries_of("/proc/self/fd"), descriptors);
}

TEST_F(CommunicatorsTest, WhatIsDestroyedAborts) {
  {
    NcclCommunicators communicators(library_, patient());
    ASSERT_TRUE(communicators.connect(alone(communicators), config_));
  }
  EXPECT_EQ(stub_live(), 0);
}

TEST_F(CommunicatorsTest, ConfigComesFromSettings) {
  const Schema schema = runtime_schema();
  EXPECT_EQ(schema.setting("nccl.net")->range.max, CommunicatorConfig::kLongestName);
  Settings settings = Settings::defaults(schema);
  CommunicatorConfig config = communicator_config(settings);
  EXPECT_EQ(config.blocking, 0);
  for (const int field : {config.min_ctas, config.max_ctas, config.cga_cluster_size, config.traffic_class})
    EXPECT_EQ(field, nccl_abi::kUnset) << "NCCL's choice";
  settings.set("nccl.min_ctas", std::int64_t{2}, "x");
  settings.set("nccl.max_ctas", std::int64_t{8}, "x");
  settings.set("nccl.cga_cluster_size", std::int64_t{0}, "x");
  settings.set("nccl.ib_traffic_class", std::int64_t{0}, "x");
  config = communicator_config(settings);
  EXPECT_EQ(config.min_ctas, 2);
  EXPECT_EQ(config.max_ctas, 8);
  EXPECT_EQ(config.cga_cluster_size, 0);
  EXPECT_EQ(config.traffic_class, 0);
  EXPECT_EQ(config.nvls_ctas, nccl_abi::kUnset);
  EXPECT_EQ(config.collnet, nccl_abi::kUnset);
  EXPECT_STREQ(config.network.data(), "");
  settings.set("nccl.nvls_ctas", std::int64_t{12}, "x");
  settings.set("nccl.collnet", std::string("off"), "x");
  settings.set("nccl.net", std::string("Socket"), "x");
  config = communicator_config(settings);
  EXPECT_EQ(config.nvls_ctas, 12);
  EXPECT_EQ(config.collnet, 0);
  EXPECT_STREQ(config.network.data(), "Socket");
}

TEST(Library, SaysWhatIsWrongWithIt) {
  EXPECT_THAT(
      NcclLibrary::open("/nowhere/libnccl.so.2").error().message,
      testing::AllOf(HasSubstr("/nowhere/libnccl.so.2 can't be opened"), HasSubstr("scripts/deps --cuda")));
  EXPECT_THAT(NcclLibrary::open("libm.so.6").error().message, HasSubstr("libm.so.6 has no ncclGetVersion"));
  EXPECT_EQ(nccl_version_text(22809), "2.28.9");
  EXPECT_EQ(NcclLibrary::open(library_path())->version, 22809);
}

}  // namespace
}  // namespace footplate
