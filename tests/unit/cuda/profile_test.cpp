// The profiler as NCCL drives it: which algorithm, protocol and channels collectives really had, and their
// time.
#include <gmock/gmock.h>

#include <thread>

#include "plugin_host.h"
#include "runtime/cuda/collective_profile.h"

namespace footplate {
namespace {

using nccl_abi::Description;
using nccl_abi::Profiler;
using nccl_abi::StateArguments;
using testing::IsEmpty;

class ProfileTest : public testing::TestWithParam<const char*> {
 protected:
  ProfileTest() {
    bind_profiler(&profile_);
    EXPECT_EQ(table().init(&context_, 1, &mask_, "data", 1, 4, 0, nullptr), nccl_abi::kSuccess);
  }
  ~ProfileTest() override {
    EXPECT_EQ(table().finalize(context_), nccl_abi::kSuccess);
    bind_profiler(nullptr);
  }
  static const Profiler& table() { return *test::exported<Profiler>(GetParam()); }

  void* launch(const char* function, std::size_t count, const char* algorithm, const char* protocol,
               std::uint8_t channels, const char* type = "ncclFloat32") {
    Description description{};
    description.type = nccl_abi::kCollective;
    description.collective.function = function;
    description.collective.count = count;
    description.collective.data_type = type;
    description.collective.channels = channels;
    description.collective.algorithm = algorithm;
    description.collective.protocol = protocol;
    void* event = nullptr;
    EXPECT_EQ(table().start(context_, &event, &description), nccl_abi::kSuccess);
    return event;
  }
  void* begin_channel(void* collective, std::uint8_t channel, std::uint64_t at_ns) {
    Description description{};
    description.type = nccl_abi::kKernelChannel;
    description.parent = collective;
    description.kernel_channel.channel = channel;
    description.kernel_channel.timer_ns = at_ns;
    void* event = nullptr;
    EXPECT_EQ(table().start(context_, &event, &description), nccl_abi::kSuccess);
    return event;
  }
  void end_channel(void* event, std::uint64_t at_ns) {
    StateArguments arguments{};
    arguments.kernel_channel.timer_ns = at_ns;
    EXPECT_EQ(table().record(event, nccl_abi::kKernelChannelStop, &arguments), nccl_abi::kSuccess);
    EXPECT_EQ(table().stop(event), nccl_abi::kSuccess);
  }
  /// A whole one, of two channels.
  void run(const char* function, std::size_t count, std::uint64_t at_ns, std::uint64_t took_ns,
           const char* algorithm = "RING") {
    void* event = launch(function, count, algorithm, "SIMPLE", 2);
    table().stop(event);
    void* one = begin_channel(event, 0, at_ns + 10);
    void* two = begin_channel(event, 1, at_ns);
    end_channel(one, at_ns + took_ns - 5);
    end_channel(two, at_ns + took_ns);
  }
  bool listening() const { return mask_ != 0; }

  CollectiveProfile profile_;
  int mask_ = -1;
  void* context_ = nullptr;
};
INSTANTIATE_TEST_SUITE_P(Versions, ProfileTest, testing::Values("ncclProfiler_v5", "ncclProfiler_v6"));

TEST_P(ProfileTest, ListensForTheStepsItIsAskedFor) {
  EXPECT_EQ(mask_, 0) << "nothing is asked of NCCL before";
  profile_.measure(100, 50);
  profile_.at_step(99);
  EXPECT_EQ(mask_, 0);
  profile_.at_step(100);
  EXPECT_EQ(mask_, (1 << 1) | (1 << 6));
  profile_.at_step(149);
  EXPECT_TRUE(listening());
  profile_.at_step(150);
  EXPECT_EQ(mask_, 0);
  profile_.measure(200, 0);
  profile_.at_step(200);
  EXPECT_FALSE(listening());
}

TEST_P(ProfileTest, AGapInStepsDoesntKeepItListening) {
  profile_.measure(100, 5);
  profile_.at_step(102);
  EXPECT_TRUE(listening());
  profile_.at_step(5000);
  EXPECT_FALSE(listening());
}

TEST(CollectiveRow, WhatIsPassedOnCrossesALinkOnce) {
  CollectiveRow row;
  row.collective = "sendrecv";
  row.ranks = 4;
  row.bytes = 3000;
  row.total_ns = 1000;
  EXPECT_EQ(row.bus_gb_per_s(), 3);
}

TEST_P(ProfileTest, ByCollectiveSizeAndWhatItWasDoneBy) {
  run("AllReduce", 1 << 18, 1000, 500'000);  // 1 MiB
  run("AllReduce", 1 << 18, 2'000'000, 700'000);
  run("AllReduce", (1 << 19) - 1, 4'000'000, 600'000);  // still below 2 MiB
  run("AllReduce", 1 << 18, 6'000'000, 100'000, "NVLS_TREE");
  run("AllGather", 1 << 16, 8'000'000, 300'000);  // 256 KiB of each of 4 ranks
  const auto rows = profile_.rows();
  ASSERT_EQ(rows.size(), 3u);
  EXPECT_EQ(rows[0].collective, "all_gather");
  EXPECT_EQ(rows[0].at_least, 1u << 20);
  EXPECT_NEAR(rows[0].bus_gb_per_s(), (1 << 20) / 300e3 * 0.75, 1e-9);
  EXPECT_EQ(rows[1].algorithm, "ring");
  EXPECT_EQ(rows[1].protocol, "simple");
  EXPECT_EQ(rows[1].channels, 2);
  EXPECT_EQ(rows[1].count, 3u);
  EXPECT_EQ(rows[1].at_least, 1u << 20);
  EXPECT_EQ(rows[1].least_ns, 500'000u);
  EXPECT_EQ(rows[1].most_ns, 700'000u);
  EXPECT_NEAR(rows[1].mean_us(), 600, 1e-9);
  EXPECT_NEAR(rows[1].bus_gb_per_s(), (2.0 * (1 << 20) + 4.0 * ((1 << 19) - 1)) / 1.8e6 * 1.5, 1e-9);
  EXPECT_EQ(rows[2].algorithm, "nvls_tree");
  EXPECT_EQ(profile_.unfinished() + profile_.left_out(), 0u);
}

TEST_P(ProfileTest, ACollectiveIsOverWithItsLastChannel) {
  void* event = launch("AllReduce", 1000, "TREE", "LL", 2);
  void* one = begin_channel(event, 0, 100);
  end_channel(one, 200);
  EXPECT_EQ(table().stop(event), nccl_abi::kSuccess);
  EXPECT_THAT(profile_.rows(), IsEmpty()) << "enqueued isn't done, and one channel isn't all";
  end_channel(begin_channel(event, 1, 150), 400);
  ASSERT_EQ(profile_.rows().size(), 1u);
  EXPECT_EQ(profile_.rows()[0].total_ns, 300u);
  end_channel(begin_channel(event, 2, 500), 900);  // of nothing that is known any more
  EXPECT_EQ(profile_.rows()[0].count, 1u);
}

TEST_P(ProfileTest, WhatNeverEndsMakesRoom) {
  for (std::size_t i = 0; i < CollectiveProfile::kOpen + 10; ++i) launch("AllReduce", 10, "RING", "LL", 1);
  EXPECT_EQ(profile_.unfinished(), 10u);
  run("AllReduce", 10, 0, 100);
  EXPECT_EQ(profile_.rows().size(), 1u);
}

TEST_P(ProfileTest, WhatComesTooLateReachesNobodyElse) {
  void* late = launch("AllReduce", 10, "RING", "LL", 1);
  for (std::size_t i = 0; i < CollectiveProfile::kOpen; ++i)
    table().stop(launch("AllReduce", 10, "RING", "LL", 1));
  EXPECT_EQ(begin_channel(late, 0, 5), nullptr) << "its place is another one's by now";
  EXPECT_THAT(profile_.rows(), IsEmpty());
}

TEST_P(ProfileTest, MoreKindsThanRowsAreCounted) {
  for (int i = 0; i < 300; ++i) {
    void* event =
        launch("AllReduce", std::size_t{1} << (i % 30), "RING", "LL", static_cast<std::uint8_t>(1 + i / 30));
    (void)event;
  }
  EXPECT_EQ(profile_.left_out(), 300u - CollectiveProfile::kRows);
}

TEST_P(ProfileTest, OfNoInterest) {
  EXPECT_EQ(launch("Send", 10, "RING", "LL", 1), nullptr);
  EXPECT_EQ(launch("AllReduce", 10, "RING", "LL", 0), nullptr);
  Description group{};
  group.type = 1;
  void* event = &group;
  EXPECT_EQ(table().start(context_, &event, &group), nccl_abi::kSuccess);
  EXPECT_EQ(event, nullptr);
  EXPECT_EQ(table().stop(nullptr), nccl_abi::kSuccess);
  EXPECT_EQ(table().record(nullptr, 3, nullptr), nccl_abi::kSuccess);
  EXPECT_EQ(begin_channel(nullptr, 0, 1), nullptr);
  EXPECT_EQ(begin_channel(reinterpret_cast<void*>(0xdeadbeef01), 0, 1), nullptr);
}

TEST_P(ProfileTest, BeginsAnew) {
  run("AllReduce", 10, 0, 100);
  void* before = launch("AllReduce", 10, "RING", "LL", 1);
  table().stop(before);
  profile_.measure(10, 10);
  end_channel(begin_channel(before, 0, 1), 5);
  EXPECT_THAT(profile_.rows(), IsEmpty());
}

TEST_P(ProfileTest, FromSeveralThreads) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      for (int i = 0; i < 200; ++i) run("AllReduce", 1000, 0, 100);
    });
  std::thread reader([&] {
    for (int i = 0; i < 50; ++i) {
      profile_.rows();
      profile_.at_step(i);
    }
  });
  for (auto& thread : threads) thread.join();
  reader.join();
  ASSERT_EQ(profile_.rows().size(), 1u);
  EXPECT_EQ(profile_.rows()[0].count, 800u);
}

}  // namespace
}  // namespace footplate
