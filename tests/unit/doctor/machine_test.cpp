#include "console/doctor/machine.h"

#include <gmock/gmock.h>

#include "tests/unit/doctor/fixture.h"

namespace footplate {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr std::int64_t kMebibyte = 1 << 20;
constexpr std::int64_t kGibibyte = 1 << 30;

void expect_good(const Check& check) {
  EXPECT_EQ(check.verdict, Verdict::good) << check.found;
  EXPECT_THAT(check.mend, IsEmpty());
  EXPECT_FALSE(check.found.empty());
}

void expect_to_mend(const Check& check, const std::string& how) {
  EXPECT_EQ(check.verdict, Verdict::to_mend) << check.found;
  EXPECT_THAT(check.mend, HasSubstr(how));
  EXPECT_FALSE(check.found.empty());
}

TEST(MachineTest, Memory) {
  expect_good(check_memory({16 * kGibibyte, 8 * kGibibyte}, {}));
  expect_to_mend(check_memory({16 * kGibibyte, kGibibyte}, {}), "end other programs");
  const GroupLimits tight{.memory = 4 * kGibibyte, .memory_left = kGibibyte, .cores = {}};
  const Check check = check_memory({16 * kGibibyte, 8 * kGibibyte}, tight);
  expect_to_mend(check, "--memory=8g");
  EXPECT_THAT(check.found,
              AllOf(HasSubstr("1 GiB can be used"), HasSubstr("the control group allows 4 GiB")));
  expect_to_mend(check_memory({}, {}), "/proc");
}

TEST(MachineTest, Cores) {
  expect_good(check_cores({8, 8}, {}));
  const Check bound = check_cores({8, 4}, {});
  expect_good(bound);  // as Slurm does
  EXPECT_THAT(bound.found, HasSubstr("4 cores of 8 (bound)"));
  expect_good(check_cores({1, 1}, {}));
  expect_to_mend(check_cores({8, 1}, {}), "taskset -c 0-7");
  const Check quota = check_cores({8, 8}, {.memory = {}, .memory_left = {}, .cores = 1.5});
  expect_good(quota);
  EXPECT_THAT(quota.found, HasSubstr("time of 1.5 (control group); run.threads = 0 takes no more"));
  expect_good(check_cores({8, 2}, {.memory = {}, .memory_left = {}, .cores = 2.0}));
}

TEST(MachineTest, Devices) {
  const Check none = check_devices({});
  expect_good(none);
  EXPECT_THAT(none.found, HasSubstr("none"));
  expect_good(check_devices({{"NVIDIA H200"}, "570.86.10", "570.86.10"}));
  expect_good(check_devices({{"NVIDIA H200"}, "570.86.10", "/usr/local/nvidia/lib64/libcuda.so.1"}));
  expect_to_mend(check_devices({{"NVIDIA H200"}, "570.86.10", "535.183.01"}), "reboot");
  expect_to_mend(check_devices({{"NVIDIA H200"}, "570.86.10", ""}), "--gpus all");
  expect_to_mend(check_devices({{}, "570.86.10", "570.86.10"}), "nvidia-smi");
}

TEST(MachineTest, Network) {
  expect_good(check_network({}));
  const Check check = check_network({Interface{"eth0", "up", 1500, 25000}, {"mlx5_0"}});
  expect_good(check);
  EXPECT_THAT(check.found, AllOf(HasSubstr("eth0"), HasSubstr("25 Gbit/s"), HasSubstr("mlx5_0")));
  expect_to_mend(check_network({Interface{"eth0", "down", 1500, 0}, {}}), "ip link set eth0 up");
}

TEST(MachineTest, SharedMemory) {
  expect_good(check_shared_memory({"/dev/shm", kGibibyte, kGibibyte}));
  expect_to_mend(check_shared_memory({"/dev/shm", 64 * kMebibyte, 64 * kMebibyte}), "--shm-size=1g");
  expect_to_mend(check_shared_memory({"/dev/shm", std::nullopt, 0}), "mount -t tmpfs");
}

TEST(MachineTest, Limits) {
  expect_good(check_limits({8 * kMebibyte, 20000}, false));
  expect_good(check_limits({std::nullopt, std::nullopt}, true));
  expect_to_mend(check_limits({8 * kMebibyte, 20000}, true), "ulimit -l unlimited");
  expect_to_mend(check_limits({std::nullopt, 256}, false), "ulimit -n 1024");
}

TEST(MachineTest, Logout) {
  expect_good(check_logout({.has_logind = false, .kills = false, .lingers = false}, "ann"));
  expect_good(check_logout({.has_logind = true, .kills = false, .lingers = false}, "ann"));
  expect_good(check_logout({.has_logind = true, .kills = true, .lingers = true}, "ann"));
  expect_to_mend(check_logout({.has_logind = true, .kills = true, .lingers = false}, "ann"),
                 "sudo loginctl enable-linger ann");
}

TEST(MachineTest, Disk) {
  const Room roomy{"/tmp", 100 * kGibibyte, 50 * kGibibyte};
  expect_good(check_disk({"runs", 100 * kGibibyte, 50 * kGibibyte}, roomy));
  expect_to_mend(check_disk({"runs", 100 * kGibibyte, kMebibyte}, roomy), "FOOTPLATE_RUNS");
  expect_to_mend(check_disk({"runs", std::nullopt, 0}, roomy), "FOOTPLATE_RUNS");
  expect_to_mend(check_disk(roomy, {"/tmp", kGibibyte, 0}), "df -h /tmp");
}

Libraries libraries(
    const std::string& torch_file =
        "/home/ann/.cache/footplate/env-cpu/lib/python3.11/site-packages/torch/lib/libtorch_cpu.so") {
  LibrariesAnswer found;
  EXPECT_TRUE(read_json({{"footplate", "0.1.0"},
                         {"libtorch", "2.11.0+cu130"},
                         {"libtorch_file", torch_file},
                         {"mpi", "Open MPI v5.0.11"}},
                        found));
  return {found, "0.1.0", "2.11.0", "5.0.11", "Lua 5.4.4"};
}

TEST(MachineTest, Versions) {
  const Check check = check_versions(libraries());
  expect_good(check);
  EXPECT_EQ(check.found, "footplate 0.1.0, LibTorch 2.11.0+cu130, Open MPI v5.0.11, Lua 5.4.4");
  Libraries incomplete = libraries();
  incomplete.missing = {"footplate-lua"};
  expect_to_mend(check_versions(incomplete), "no footplate-lua");
  Libraries other = libraries();
  other.found.libtorch = "2.12.0";
  EXPECT_THAT(check_versions(other).found, HasSubstr("tested with LibTorch 2.11.0"));
  other.own_version = "0.2.0";
  expect_to_mend(check_versions(other), "build all of it");
}

class EnvironmentTest : public test::FileMachine {};

TEST_F(EnvironmentTest, IsCompleteWithItsStamp) {
  expect_to_mend(check_environment(libraries(), root()), "scripts/deps");
  write("home/ann/.cache/footplate/env-cpu/stamp", "hash\n");
  expect_good(check_environment(libraries(), root()));
  expect_good(check_environment(libraries("/opt/libtorch/lib/libtorch_cpu.so"), root()));
  expect_good(check_environment(
      libraries("/opt/torch/.venv/lib/python3.12/site-packages/torch/lib/libtorch_cpu.so"), root()));
}

TEST(CheckTest, Lines) {
  Check check{.name = "cores", .verdict = Verdict::to_mend, .found = "one", .mend = "buy another"};
  EXPECT_EQ(to_lines(check), "to mend   cores            one\n          mend: buy another\n");
  check.verdict = Verdict::left_out;
  check.mend.clear();
  EXPECT_EQ(to_lines(check), "left out  cores            one\n");
  EXPECT_EQ(to_json(check)["mend"], Json());
  EXPECT_EQ(bytes_text(23.5 * kGibibyte), "23.5 GiB");
  EXPECT_EQ(bytes_text(12), "12 bytes");
}

}  // namespace
}  // namespace footplate
