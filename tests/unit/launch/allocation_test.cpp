#include "console/launch/start/allocation.h"

#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>

#include "protocol/host_name.h"

namespace footplate {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(AllocationTest, TasksOfSlurmsNodes) {
  EXPECT_THAT(tasks_per_node("2(x3),1"), ElementsAre(2, 2, 2, 1));
  EXPECT_THAT(tasks_per_node("8"), ElementsAre(8));
  for (const char* odd : {"", "x", "2(x", "2(x0)", "0", "2(x99999999)"})
    EXPECT_THAT(tasks_per_node(odd), IsEmpty()) << odd;
}

TEST(AllocationTest, HostsOfLsf) {
  EXPECT_EQ(host_list_text(hosts_of_lsf("n1 4 n2 2")), "n1:4,n2:2");
  EXPECT_THAT(hosts_of_lsf(""), IsEmpty());
}

TEST(AllocationTest, ThisMachineComesFirst) {
  const auto file = std::filesystem::temp_directory_path() / ("nodes-" + std::to_string(::getpid()));
  std::ofstream(file) << "n2\nn2\n" << host_name() << "\n" << host_name() << "\n";
  const auto hosts = allocated_hosts({{"PBS_NODEFILE", file.string()}});
  std::filesystem::remove(file);
  ASSERT_TRUE(hosts) << hosts.error().message;
  EXPECT_EQ(host_list_text(hosts->value()), host_name() + ":2,n2:2");
  // A shell on another machine; a job of one host; a node whose name leads nowhere; no job.
  EXPECT_FALSE(allocated_hosts({{"LSB_MCPU_HOSTS", "n1 4 n2 2"}})->has_value());
  EXPECT_THAT(allocated_hosts({{"LSB_MCPU_HOSTS", host_name() + " 4"}})->value(), IsEmpty());
  EXPECT_THAT(allocated_hosts({{"SLURM_JOB_ID", "1"}, {"SLURM_JOB_NUM_NODES", "1"}})->value(), IsEmpty());
  EXPECT_TRUE(allocated_hosts({{"LSB_MCPU_HOSTS", "n1 4 n2 2"}, {"SLURMD_NODENAME", "n2"}})->has_value());
  EXPECT_FALSE(allocated_hosts({})->has_value());
}

}  // namespace
}  // namespace footplate
