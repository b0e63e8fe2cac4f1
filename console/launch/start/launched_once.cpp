#include "console/launch/start/launched_once.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>

#include "console/client/runs/process_table.h"
#include "console/launch/start/slurm_job.h"

namespace footplate {
namespace {

/// The variables of a launcher that say which process of how many this one is.
struct Launcher {
  const char* program;
  const char* rank;
  const char* size;
};

/// Of Slurm those of a step: the batch script, which is started once, has SLURM_PROCID and SLURM_NTASKS as
/// well. MPICH's and Intel's mpirun, and Slurm's own PMI, set PMI_RANK.
constexpr Launcher kSlurm{"srun", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS"};
constexpr std::array kLaunchers{kSlurm, Launcher{"mpirun", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
                                Launcher{"mpirun", "MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_SIZE"},
                                Launcher{"mpirun", "PMI_RANK", "PMI_SIZE"}};

/// What mpirun tells the processes that it starts, by the beginnings of the names.
constexpr std::array<std::string_view, 6> kOfAnMpi{"PMIX_",     "PRTE_LAUNCHED", "OMPI_COMM_WORLD_",
                                                   "OMPI_APP_", "OMPI_FIRST_",   "OMPI_UNIVERSE_SIZE"};

bool is_of_an_mpi(const std::string& name) {
  return std::ranges::any_of(kOfAnMpi, [&](std::string_view begin) { return name.starts_with(begin); });
}

std::string refusal(const Launcher& launcher, std::int64_t rank, std::int64_t size) {
  const std::string count = std::to_string(size);
  const std::string program = launcher.program;
  return "footplate run was started " + count + " times, by " + program + " (" + launcher.rank + "=" +
         std::to_string(rank) + ", " + launcher.size + "=" + count +
         "): each would start a run of its own. It starts the ranks itself: write `footplate run CONFIG -n " +
         count + "` once, in the sbatch script or the shell, without " + program + ", or `" + program +
         " -n 1 footplate run CONFIG -n " + count +
         "`. Where it is started once after all, or runs of their own are meant: `env -u " + launcher.size +
         " footplate run CONFIG`";
}

}  // namespace

Result<void> check_launched_once(const Environment& environment) {
  // A run's mpirun leaves its variables to what a rank starts.
  if (const auto run = environment.find(kRunVariable); run != environment.end() && !run->second.empty())
    return {};
  for (const Launcher& launcher : kLaunchers) {
    const auto rank = number_in(environment, launcher.rank);
    const auto size = number_in(environment, launcher.size);
    if (!rank || !size || *size <= 1) continue;
    if (launcher.size == kSlurm.size && !is_in_step(environment)) continue;
    return fail(ErrorKind::usage, refusal(launcher, *rank, *size));
  }
  return {};
}

/// Whoever ends the outer run finds its processes by that variable in what they were started with
/// (processes_with_variable): that memory is written over.
void leave_outer_run() {
  char* const folder = std::getenv(kRunVariable);
  if (folder == nullptr || *folder == '\0') return;
  if (const char* temporary = std::getenv("TMPDIR");
      temporary != nullptr && std::string_view(temporary) == folder)
    ::unsetenv("TMPDIR");  // it goes with that run
  std::fill_n(folder, std::strlen(folder), '-');
  ::unsetenv(kRunVariable);
  for (const auto& [name, value] : environment_of_process())
    if (is_of_an_mpi(name)) ::unsetenv(name.c_str());
}

}  // namespace footplate
