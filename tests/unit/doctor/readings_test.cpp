#include "console/doctor/readings.h"

#include <gmock/gmock.h>
#include <sched.h>

#include <thread>

#include "runtime/base/cores.h"
#include "tests/unit/doctor/fixture.h"

namespace footplate {
namespace {

using testing::ElementsAre;

constexpr std::int64_t kGiB = std::int64_t{1} << 30;

class ReadingsTest : public test::FileMachine {};

TEST_F(ReadingsTest, Memory) {
  const auto memory = parse_meminfo(
      "MemTotal:        4194304 kB\nMemFree:  12 kB\nMemAvailable:    1048576 kB\nSwapTotal: 0 kB\n");
  EXPECT_EQ(memory.total, 4 * kGiB);
  EXPECT_EQ(memory.available, kGiB);
  EXPECT_FALSE(parse_meminfo("").total);
  EXPECT_FALSE(parse_meminfo("MemTotal:\nMemAvailable: many kB\n").available);
}

/// run.threads = 0 divides these.
TEST_F(ReadingsTest, CoresThatThisProcessMayUse) {
  cpu_set_t all;
  ASSERT_EQ(::sched_getaffinity(0, sizeof(all), &all), 0);
  EXPECT_EQ(read_usable_cores(root()), CPU_COUNT(&all));
  int bound = 0;
  std::thread([&] {
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(::sched_getcpu(), &one);
    ASSERT_EQ(::sched_setaffinity(0, sizeof(one), &one), 0);
    bound = read_usable_cores(root());
  }).join();
  EXPECT_EQ(bound, 1);
  write("proc/self/cgroup", "0::/job\n");
  write("sys/fs/cgroup/job/cpu.max", "50000 100000\n");
  EXPECT_EQ(read_usable_cores(root()), 1);
}

TEST_F(ReadingsTest, NoGroups) {
  const auto limits = read_group_limits(root());
  EXPECT_FALSE(limits.memory || limits.memory_left || limits.cores);
}

TEST_F(ReadingsTest, GroupsOfVersion2) {
  write("proc/self/cgroup", "0::/user.slice/job\n");
  write("sys/fs/cgroup/user.slice/job/memory.max", "max\n");
  write("sys/fs/cgroup/user.slice/job/cpu.max", "max 100000\n");
  write("sys/fs/cgroup/user.slice/memory.max", "4294967296\n");
  write("sys/fs/cgroup/user.slice/memory.current", "3221225472\n");
  write("sys/fs/cgroup/user.slice/memory.stat", "anon 1\ninactive_file 1073741824\n");
  write("sys/fs/cgroup/user.slice/cpu.max", "150000 100000\n");
  const auto limits = read_group_limits(root());
  EXPECT_EQ(limits.memory, 4 * kGiB);
  EXPECT_EQ(limits.memory_left, 2 * kGiB);  // what is cached is given back
  EXPECT_EQ(limits.cores, 1.5);
}

TEST_F(ReadingsTest, TheTightestGroupCounts) {
  write("proc/self/cgroup", "0::/a/b\n");
  write("sys/fs/cgroup/a/b/memory.max", "4294967296\n");
  write("sys/fs/cgroup/a/memory.max", "2147483648\n");
  write("sys/fs/cgroup/a/memory.current", "1073741824\n");
  const auto limits = read_group_limits(root());
  EXPECT_EQ(limits.memory, 2 * kGiB);
  EXPECT_EQ(limits.memory_left, kGiB);
}

TEST_F(ReadingsTest, GroupsOfVersion1) {
  write("proc/self/cgroup", "5:cpu,cpuacct:/slurm\n4:memory:/slurm/job_7\n1:name=systemd:/\n");
  write("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  write("sys/fs/cgroup/memory/slurm/job_7/memory.limit_in_bytes", "8589934592\n");
  write("sys/fs/cgroup/memory/slurm/job_7/memory.usage_in_bytes", "1073741824\n");
  write("sys/fs/cgroup/cpu,cpuacct/slurm/cpu.cfs_quota_us", "200000\n");
  write("sys/fs/cgroup/cpu,cpuacct/slurm/cpu.cfs_period_us", "100000\n");
  write("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "-1\n");
  write("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "100000\n");
  const auto limits = read_group_limits(root());
  EXPECT_EQ(limits.memory, 8 * kGiB);
  EXPECT_EQ(limits.memory_left, 7 * kGiB);
  EXPECT_EQ(limits.cores, 2.0);
}

TEST_F(ReadingsTest, WhatIsLeftIsWhatEveryoneLeaves) {
  EXPECT_FALSE(memory_left(root()));
  write("proc/meminfo", "MemTotal: 8388608 kB\nMemAvailable: 4194304 kB\n");
  EXPECT_EQ(memory_left(root()), 4 * kGiB);
  write("proc/self/cgroup", "0::/job\n");
  write("sys/fs/cgroup/job/memory.max", "2147483648\n");
  write("sys/fs/cgroup/job/memory.current", "1073741824\n");
  EXPECT_EQ(memory_left(root()), kGiB);
}

TEST_F(ReadingsTest, NoLimitInVersion1) {
  write("proc/self/cgroup", "4:memory:/\n");
  write("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  EXPECT_FALSE(read_group_limits(root()).memory);
}

TEST_F(ReadingsTest, AContainerSeesItsOwnGroupAtTheTop) {
  write("proc/self/cgroup", "0::/../../docker/1234\n");
  write("sys/fs/cgroup/memory.max", "1073741824\n");
  EXPECT_EQ(read_group_limits(root()).memory, kGiB);
}

TEST_F(ReadingsTest, RubbishInGroups) {
  write("proc/self/cgroup", "rubbish\n:::\n0::\n7\n");
  write("sys/fs/cgroup/memory.max", "a lot\n");
  write("sys/fs/cgroup/cpu.max", "0 0 0\n");
  EXPECT_FALSE(read_group_limits(root()).memory);
}

constexpr const char* kRoutes =
    "Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT\n"
    "wlan0\t00000000\t0101A8C0\t0003\t0\t0\t600\t00000000\t0\t0\t0\n"
    "eth1\t0000010A\t00000000\t0001\t0\t0\t0\t0000FFFF\t0\t0\t0\n"
    "eth0\t00000000\t0100000A\t0003\t0\t0\t100\t00000000\t0\t0\t0\n"
    "tun0\t00000000\t0100000A\t0002\t0\t0\t1\t00000000\t0\t0\t0\n";

TEST_F(ReadingsTest, TheDefaultRouteWithTheLowestMetric) {
  write("proc/net/route", kRoutes);
  write("sys/class/net/eth0/operstate", "up\n");
  write("sys/class/net/eth0/mtu", "9000\n");
  write("sys/class/net/eth0/speed", "100000\n");
  write("sys/class/infiniband/mlx5_1/node_type", "1: CA\n");
  write("sys/class/infiniband/mlx5_0/node_type", "1: CA\n");
  for (const auto& [port, link, state] : {std::tuple("mlx5_0/ports/1", "Ethernet\n", "4: ACTIVE\n"),
                                          {"mlx5_1/ports/1", "InfiniBand\n", "1: DOWN\n"},
                                          {"mlx5_1/ports/2", "InfiniBand\n", "4: ACTIVE\n"},
                                          {"mlx5_2/ports/1", "InfiniBand\n", "1: DOWN\n"}}) {
    write(std::string("sys/class/infiniband/") + port + "/link_layer", link);
    write(std::string("sys/class/infiniband/") + port + "/state", state);
  }
  const auto network = read_network(root());
  ASSERT_TRUE(network.interface);
  EXPECT_EQ(network.interface->name, "eth0");
  EXPECT_EQ(network.interface->state, "up");
  EXPECT_EQ(network.interface->mtu, 9000);
  EXPECT_EQ(network.interface->mbit_per_s, 100000);
  EXPECT_THAT(network.infiniband, ElementsAre("mlx5_0", "mlx5_1", "mlx5_2"));
  EXPECT_THAT(network.active_infiniband, ElementsAre("mlx5_1"));
}

TEST_F(ReadingsTest, WithoutADefaultRouteTheFirstOtherOne) {
  write("proc/net/route",
        "Iface\tDestination\tGateway\n"
        "eth1\t0000010A\t00000000\t0001\t0\t0\t0\t0000FFFF\t0\t0\t0\n");
  write("sys/class/net/eth1/speed", "-1\n");  // as drivers of virtual machines say
  const auto network = read_network(root());
  ASSERT_TRUE(network.interface);
  EXPECT_EQ(network.interface->name, "eth1");
  EXPECT_EQ(network.interface->mbit_per_s, 0);
}

TEST_F(ReadingsTest, Version6Alone) {
  const std::string zeros(32, '0');
  write("proc/net/ipv6_route",
        zeros + " 00 " + zeros +
            " 00 fe800000000000000000000000000001 00000400 00000001 00000000 00000003 eth2\n" + zeros +
            " 00 " + zeros + " 00 " + zeros + " 00000000 00000001 00000000 00200201 lo\n");
  const auto network = read_network(root());
  ASSERT_TRUE(network.interface);
  EXPECT_EQ(network.interface->name, "eth2");
}

TEST_F(ReadingsTest, NoRoute) {
  EXPECT_FALSE(read_network(root()).interface);
  write("proc/net/route", "Iface\tDestination\n");
  EXPECT_FALSE(read_network(root()).interface);
}

TEST_F(ReadingsTest, DriverVersions) {
  EXPECT_EQ(parse_driver_version(
                "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.183.01  Sun May 12 19:39:15 UTC 2024\n"
                "GCC version:  gcc version 12.2.0 (Debian 12.2.0-14)\n"),
            "535.183.01");
  EXPECT_EQ(parse_driver_version(
                "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  570.86.10  Release Build\n"),
            "570.86.10");
  EXPECT_EQ(parse_driver_version(""), "");
}

TEST_F(ReadingsTest, Devices) {
  EXPECT_TRUE(read_devices(root()).models.empty());
  write("proc/driver/nvidia/version",
        "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.183.01  Sun May 12\n");
  write("proc/driver/nvidia/gpus/0000:01:00.0/information", "Model: \t\t NVIDIA H200\nIRQ: 45\n");
  write("proc/driver/nvidia/gpus/0000:02:00.0/information", "Model: \t\t NVIDIA H200\n");
  write("usr/lib/x86_64-linux-gnu/libcuda.so.1", "");
  write("usr/lib/x86_64-linux-gnu/libcuda.so.535.183.01", "");
  const auto devices = read_devices(root());
  EXPECT_THAT(devices.models, ElementsAre("NVIDIA H200", "NVIDIA H200"));
  EXPECT_EQ(devices.module, "535.183.01");
  EXPECT_EQ(devices.library, "535.183.01");
}

TEST_F(ReadingsTest, VisibleDevices) {
  DeviceReading two;
  two.models = {"NVIDIA H200", "NVIDIA H200"};
  EXPECT_EQ(visible_devices({}, nullptr), 0);
  EXPECT_EQ(visible_devices({}, "0,1"), 0);
  EXPECT_EQ(visible_devices(two, nullptr), 2);
  for (const auto& [selection, count] : {std::pair{"", 0},
                                         {"-1", 0},
                                         {"1", 1},
                                         {"1,0", 2},
                                         {"0,-1,1", 1},
                                         {"0,7,1", 1},
                                         {"GPU-1f2e,GPU-3d4c", 2},
                                         {"0,1,0", 2},
                                         {"none", 0},
                                         {"0x1", 0}})
    EXPECT_EQ(visible_devices(two, selection), count) << selection;
}

TEST_F(ReadingsTest, KillUserProcesses) {
  EXPECT_EQ(parse_kill_user_processes("[Login]\n#KillUserProcesses=no\n"), false);
  EXPECT_EQ(parse_kill_user_processes("[Login]\n#KillUserProcesses=yes\n"), true);
  EXPECT_EQ(parse_kill_user_processes("#KillUserProcesses=no\nKillUserProcesses = yes\n"), true);
  EXPECT_EQ(parse_kill_user_processes("KillUserProcesses=true\nKillUserProcesses=off\n"), false);
  EXPECT_EQ(parse_kill_user_processes("#KillOnlyUsers=\n"), std::nullopt);
}

TEST_F(ReadingsTest, Logout) {
  write("etc/systemd/logind.conf", "[Login]\n#KillUserProcesses=yes\n");
  EXPECT_FALSE(read_logout(root(), "ann").kills);  // nothing runs that would
  write("run/systemd/system/units", "");
  EXPECT_TRUE(read_logout(root(), "ann").kills);
  EXPECT_FALSE(read_logout(root(), "root").kills);
  write("etc/systemd/logind.conf.d/50-cluster.conf", "[Login]\nKillUserProcesses=no\n");
  EXPECT_FALSE(read_logout(root(), "ann").kills);
  write("var/lib/systemd/linger/ann", "");
  EXPECT_TRUE(read_logout(root(), "ann").lingers);
  EXPECT_FALSE(read_logout(root(), "bob").lingers);
}

}  // namespace
}  // namespace footplate
