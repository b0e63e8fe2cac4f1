#include "console/launch/start/host_probe.h"

#include <sys/wait.h>

#include <system_error>
#include <utility>

#include "console/launch/start/child.h"
#include "console/launch/start/command.h"
#include "console/launch/start/launch_failure.h"
#include "run_files/text_file.h"

namespace footplate {
namespace {

using std::chrono::steady_clock;

constexpr std::chrono::seconds kAnswerTakes{15};  ///< ssh has 10 s to connect

/// Of comm.ports: each has its own, since all are started at once.
constexpr std::size_t kPortsOfOne = 2;

}  // namespace

HostProbe::HostProbe(const RunPlan& plan, const std::vector<Host>& hosts, const PrivateFolders& folders)
    : until_(steady_clock::now() + kAnswerTakes) {
  for (const Host& host : hosts) {
    const auto command = launch_command(plan.program_folder, 1, {"--doctor", "versions"}, folders,
                                        {.hosts = {{.name = host.name}},
                                         .network = plan.network,
                                         .ports = plan.ports,
                                         .ports_of_mpirun = kPortsOfOne,
                                         .ports_taken = kPortsOfOne * asked_.size(),
                                         .has_private_folders = false});
    if (!command) {
      silent_[host.name] = command.error().message;
      continue;
    }
    auto said = folders.temporary / ("probe-" + host.name);
    auto child = start_child(*command, said, said);
    if (child)
      asked_.push_back({host.name, mpi_prefix(*command), std::move(said), *std::move(child)});
    else
      silent_[host.name] = child.error().message;
  }
}

HostProbe::~HostProbe() {
  for (Asked& asked : asked_) end_launched(asked.process.pid());
}

bool HostProbe::is_done() {
  const bool is_late = steady_clock::now() >= until_;
  for (auto asked = asked_.begin(); asked != asked_.end();) {
    const bool has_ended = asked->process.ended();
    if (!has_ended && !is_late) {
      ++asked;
      continue;
    }
    end_launched(asked->process.pid());
    conclude(*asked);
    asked = asked_.erase(asked);
  }
  return asked_.empty();
}

void HostProbe::conclude(Asked& asked) {
  const bool answers = asked.process.await_end(std::chrono::seconds(1)) &&
                       WIFEXITED(asked.process.wait_status()) &&
                       WEXITSTATUS(asked.process.wait_status()) == 0;
  if (!answers) {
    const LaunchFailure failure =
        explain_launch(text_of_file(asked.said).value_or(""), asked.host, asked.mpi_prefix);
    silent_[asked.host] =
        failure.why.empty() ? "no answer within " + std::to_string(kAnswerTakes.count()) + " s" : failure.why;
  }
  std::error_code ignored;
  std::filesystem::remove(asked.said, ignored);
}

}  // namespace footplate
