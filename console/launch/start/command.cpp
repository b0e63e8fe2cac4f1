#include "console/launch/start/command.h"

#include <pwd.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <map>

#include "console/client/runs/process_table.h"
#include "console/launch/start/ask_program.h"
#include "protocol/console_mark.h"

#ifndef FOOTPLATE_MPI_PREFIX
#define FOOTPLATE_MPI_PREFIX ""
#endif

extern char** environ;

namespace footplate {
namespace {

namespace fs = std::filesystem;

constexpr const char* kSsh = "PRTE_MCA_plm_ssh_";  ///< mpirun's settings of how it reaches hosts

/// The mpirun that the programs were built for first, in a bundle (scripts/bundle) beside them: another
/// version's would not understand them.
Result<std::string> find_mpirun(const fs::path& program_folder) {
  std::string looked;
  const std::string prefix = FOOTPLATE_MPI_PREFIX;
  const fs::path bundled = (program_folder / ".." / "mpi" / "bin" / "mpirun").lexically_normal();
  if (const char* chosen = std::getenv("FOOTPLATE_MPIRUN"); chosen != nullptr && *chosen != '\0') {
    if (is_program(chosen)) return std::string(chosen);
    return fail(ErrorKind::usage, "FOOTPLATE_MPIRUN names " + std::string(chosen) + ", which is no program");
  }
  if (is_program(bundled)) return bundled.string();
  if (!prefix.empty()) {
    if (is_program(prefix + "/bin/mpirun")) return prefix + "/bin/mpirun";
    looked = prefix + "/bin and ";
  }
  if (const auto mpirun = find_program("mpirun")) return mpirun->string();
  return fail(ErrorKind::usage,
              "no mpirun in " + looked +
                  "PATH; install it with scripts/deps, name it in FOOTPLATE_MPIRUN, or use -n 1");
}

std::string home_of_user() {
  const passwd* entry = ::getpwuid(::getuid());
  return entry != nullptr && entry->pw_dir != nullptr ? entry->pw_dir : "/";
}

/// ssh asks nothing, where nobody could answer, and doesn't wait for ever. Who has settings of his own for
/// it keeps them.
void bound_ssh(std::map<std::string, std::string>& variables) {
  const auto own = variables.lower_bound(kSsh);
  if (own == variables.end() || !own->first.starts_with(kSsh))
    variables[std::string(kSsh) + "args"] = "-o BatchMode=yes -o ConnectTimeout=10";
}

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const auto& word : words) text += (text.empty() ? "" : ",") + word;
  return text;
}

/// `here`: all ranks are on this machine.
std::vector<std::string> environment_for_ranks(const PrivateFolders& folders, bool here) {
  std::map<std::string, std::string> variables;
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
  if (here) variables["OMPI_MCA_btl_sm_backing_directory"] = folders.shared_memory;
  if (!here) bound_ssh(variables);
  std::vector<std::string> list;
  for (const auto& [name, value] : variables) list.push_back(name + "=" + value);
  return list;
}

}  // namespace

std::string run_mark(const PrivateFolders& folders) {
  return std::string(kRunVariable) + "=" + folders.temporary.string();
}

Result<Command> launch_command(const fs::path& program_folder, int ranks,
                               const std::vector<std::string>& arguments, const PrivateFolders& folders,
                               const std::vector<std::string>& places) {
  const fs::path rank = program_folder / "footplate-rank";
  if (!is_program(rank))
    return fail(ErrorKind::usage, "no program " + rank.string() + "; build it with: scripts/run, or ninja");
  Command command;
  if (ranks > 1 || !places.empty()) {
    auto mpirun = find_mpirun(program_folder);
    if (!mpirun) return tl::unexpected(mpirun.error());
    // Fault tolerance: a lost rank doesn't end the others. No binding: a rank's threads would share one core.
    // Yield: a rank that waits in MPI leaves the core to others. Not han: of a process that joined
    // (comm.replace) only rank 0 knows that it is on this host, and han chooses by that, so that ranks run
    // different algorithms. All measured; docs/dependencies.md.
    command.arguments = {*mpirun, "--with-ft",           "ulfm", "--bind-to", "none", "--oversubscribe",
                         "--mca", "mpi_yield_when_idle", "1",    "--mca",     "coll", "^han"};
    if (places.empty())
      command.arguments.insert(command.arguments.end(),
                               {"--mca", "btl_sm_backing_directory", folders.shared_memory.string()});
    else  // the folder that this process is in may not be there
      command.arguments.insert(command.arguments.end(), {"--wdir", "/", "--host", joined(places)});
    command.arguments.insert(command.arguments.end(), {"-n", std::to_string(ranks)});
  }
  command.arguments.push_back(rank.string());
  command.arguments.insert(command.arguments.end(), arguments.begin(), arguments.end());
  command.environment = environment_for_ranks(folders, places.empty());
  return command;
}

Result<Command> rank_command(const RunPlan& plan, const StartOptions& start, const PrivateFolders& folders) {
  std::vector<std::string> arguments{"--run-dir", plan.directory.string(), "--start",
                                     std::to_string(start.number)};
  if (!start.resume.empty()) arguments.insert(arguments.end(), {"--resume", start.resume});
  if (!start.branch.empty()) arguments.insert(arguments.end(), {"--branch", start.branch});
  if (start.ran.count() > 0) arguments.insert(arguments.end(), {"--ran", std::to_string(start.ran.count())});
  if (start.left > 0) arguments.insert(arguments.end(), {"--left", std::to_string(start.left)});
  return launch_command(plan.program_folder, plan.ranks, arguments, folders);
}

}  // namespace footplate
