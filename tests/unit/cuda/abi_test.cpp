// What is written down of NCCL's types against its own header, where the build has found one that can be
// compiled.
#include <gtest/gtest.h>

#include <type_traits>

#include "runtime/cuda/nccl_library.h"

#ifdef FOOTPLATE_HAS_NCCL_H
#include <nccl.h>

namespace footplate {
namespace {

using nccl_abi::Config;

static_assert(sizeof(ncclResult_t) == sizeof(nccl_abi::Status));
constexpr bool same(int real, int ours) {
  return real == ours;
}
static_assert(same(ncclSuccess, nccl_abi::kSuccess) && same(ncclSystemError, nccl_abi::kSystemError));
static_assert(same(ncclRemoteError, nccl_abi::kRemoteError) && same(ncclInProgress, nccl_abi::kInProgress));
static_assert(sizeof(ncclUniqueId) == sizeof(nccl_abi::UniqueId));
static_assert(same(ncclUint8, nccl_abi::kUint8) && same(ncclInt64, nccl_abi::kInt64));
static_assert(same(ncclFloat32, nccl_abi::kFloat32) && same(ncclFloat64, nccl_abi::kFloat64));
static_assert(same(ncclBfloat16, nccl_abi::kBfloat16));
static_assert(same(ncclSum, nccl_abi::kSum) && same(ncclMax, nccl_abi::kMax) &&
              same(ncclMin, nccl_abi::kMin));

/// Functions whose arguments have the same sizes and places in registers: those of the table can be called.
template <class Real, class Ours>
constexpr bool kAlike = false;
template <class... Real, class... Ours>
constexpr bool kAlike<ncclResult_t (*)(Real...), nccl_abi::Status (*)(Ours...)> =
    sizeof...(Real) == sizeof...(Ours) &&
    ((sizeof(Real) == sizeof(Ours) && std::is_pointer_v<Real> == std::is_pointer_v<Ours>)&&...);
#define FOOTPLATE_ALIKE(function, member) \
  static_assert(kAlike<decltype(&(function)), decltype(NcclLibrary::member)>)
FOOTPLATE_ALIKE(ncclGetVersion, get_version);
FOOTPLATE_ALIKE(ncclGetUniqueId, get_unique_id);
FOOTPLATE_ALIKE(ncclCommInitRankConfig, init_rank_config);
FOOTPLATE_ALIKE(ncclCommFinalize, finalize);
FOOTPLATE_ALIKE(ncclCommDestroy, destroy);
FOOTPLATE_ALIKE(ncclCommAbort, abort);
FOOTPLATE_ALIKE(ncclCommGetAsyncError, get_async_error);
FOOTPLATE_ALIKE(ncclGroupStart, group_start);
FOOTPLATE_ALIKE(ncclGroupEnd, group_end);
FOOTPLATE_ALIKE(ncclAllReduce, all_reduce);
FOOTPLATE_ALIKE(ncclBroadcast, broadcast);
FOOTPLATE_ALIKE(ncclAllGather, all_gather);
FOOTPLATE_ALIKE(ncclReduceScatter, reduce_scatter);
FOOTPLATE_ALIKE(ncclSend, send);
FOOTPLATE_ALIKE(ncclRecv, receive);
#undef FOOTPLATE_ALIKE

TEST(NcclHeader, ItsConfigBeginsAsOurs) {
  const ncclConfig_t real = NCCL_CONFIG_INITIALIZER;
  const Config ours;
  ASSERT_GE(sizeof(real), sizeof(ours));  // later versions append
  EXPECT_EQ(real.magic, ours.magic);
  EXPECT_EQ(real.blocking, ours.blocking);
  EXPECT_EQ(offsetof(ncclConfig_t, blocking), offsetof(Config, blocking));
  EXPECT_EQ(offsetof(ncclConfig_t, cgaClusterSize), offsetof(Config, cga_cluster_size));
  EXPECT_EQ(offsetof(ncclConfig_t, maxCTAs), offsetof(Config, max_ctas));
  EXPECT_EQ(offsetof(ncclConfig_t, netName), offsetof(Config, net_name));
  EXPECT_EQ(offsetof(ncclConfig_t, trafficClass), offsetof(Config, traffic_class));
  EXPECT_EQ(offsetof(ncclConfig_t, commName), offsetof(Config, name));
  EXPECT_EQ(offsetof(ncclConfig_t, nvlinkCentricSched), offsetof(Config, nvlink_centric));
}

#if NCCL_VERSION_CODE >= NCCL_VERSION(2, 31, 0)
TEST(NcclHeader, ItsConfigOfACollectiveBeginsAsOurs) {
  using Ours = nccl_abi::CollectiveConfig;
  const ncclCollConfig_t real = NCCL_COLLCONFIG_INITIALIZER;
  const Ours ours;
  ASSERT_GE(sizeof(real), sizeof(ours));
  EXPECT_EQ(real.magic, ours.magic);
  EXPECT_EQ(real.forceAlgSelection, ours.force_selection);
  EXPECT_EQ(offsetof(ncclCollConfig_t, minCTAs), offsetof(Ours, min_ctas));
  EXPECT_EQ(offsetof(ncclCollConfig_t, maxCTAs), offsetof(Ours, max_ctas));
  EXPECT_EQ(offsetof(ncclCollConfig_t, algSelection), offsetof(Ours, selection));
  EXPECT_EQ(offsetof(ncclCollConfig_t, userProfilerTag), offsetof(Ours, profiler_tag));
}
#endif

}  // namespace
}  // namespace footplate
#else
TEST(NcclHeader, ItsConfigBeginsAsOurs) {
  GTEST_SKIP() << "no nccl.h that compiles (scripts/deps --cuda brings one)";
}
#endif
