#include "console/launch/start/launched_once.h"

#include <gmock/gmock.h>

namespace footplate {
namespace {

using testing::HasSubstr;

std::string said(const Environment& environment) {
  const auto once = check_launched_once(environment);
  if (once) return "once";
  EXPECT_EQ(once.error().kind, ErrorKind::usage);
  return once.error().message;
}

TEST(LaunchedOnceTest, SeveralUnderSrunAreRefusedWithWhatToWrite) {
  const Environment third{
      {"SLURM_STEP_ID", "0"}, {"SLURM_PROCID", "2"}, {"SLURM_STEP_NUM_TASKS", "4"}, {"SLURM_NTASKS", "4"}};
  EXPECT_EQ(
      said(third),
      "footplate run was started 4 times, by srun (SLURM_PROCID=2, SLURM_STEP_NUM_TASKS=4): each would "
      "start a run of its own. It starts the ranks itself: write `footplate run CONFIG -n 4` once, in "
      "the sbatch script or the shell, without srun, or `srun -n 1 footplate run CONFIG -n 4`. Where it "
      "is started once after all, or runs of their own are meant: `env -u SLURM_STEP_NUM_TASKS "
      "footplate run CONFIG`");
}

TEST(LaunchedOnceTest, SoAreSeveralUnderMpirun) {
  EXPECT_THAT(said({{"OMPI_COMM_WORLD_RANK", "0"}, {"OMPI_COMM_WORLD_SIZE", "2"}}),
              HasSubstr("started 2 times, by mpirun (OMPI_COMM_WORLD_RANK=0, OMPI_COMM_WORLD_SIZE=2)"));
  EXPECT_THAT(said({{"PMI_RANK", "1"}, {"PMI_SIZE", "8"}}), HasSubstr("env -u PMI_SIZE"));
  EXPECT_THAT(said({{"MV2_COMM_WORLD_RANK", "1"}, {"MV2_COMM_WORLD_SIZE", "8"}}), HasSubstr("-n 8"));
}

TEST(LaunchedOnceTest, OneIsFineWhateverTheJobHas) {
  EXPECT_EQ(said({}), "once");
  // sbatch --ntasks=8: its script
  EXPECT_EQ(said({{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "8"}, {"SLURM_NPROCS", "8"}}), "once");
  EXPECT_EQ(said({{"SLURM_STEP_ID", "0"},
                  {"SLURM_PROCID", "0"},
                  {"SLURM_STEP_NUM_TASKS", "1"},
                  {"SLURM_NTASKS", "8"}}),
            "once");
  // the shell of salloc, where Slurm makes that a step
  EXPECT_EQ(said({{"SLURM_STEP_ID", "4294967290"}, {"SLURM_PROCID", "0"}, {"SLURM_STEP_NUM_TASKS", "8"}}),
            "once");
  EXPECT_EQ(said({{"OMPI_COMM_WORLD_RANK", "0"}, {"OMPI_COMM_WORLD_SIZE", "1"}}), "once");
  EXPECT_EQ(said({{"PMIX_RANK", "0"}, {"PMI_SIZE", "2"}, {"PMI_RANK", ""}}), "once");
}

TEST(LaunchedOnceTest, WhatARunStartsItselfIsFine) {
  EXPECT_EQ(said({{"OMPI_COMM_WORLD_RANK", "0"},
                  {"OMPI_COMM_WORLD_SIZE", "2"},
                  {"FOOTPLATE_DOORBELL_DIR", "/tmp/footplate-0/1.d"}}),
            "once");
}

}  // namespace
}  // namespace footplate
