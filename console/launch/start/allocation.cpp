#include "console/launch/start/allocation.h"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <sstream>
#include <string>
#include <utility>

#include "console/client/render/text.h"
#include "console/launch/start/ask_program.h"
#include "console/launch/start/networks.h"
#include "console/launch/start/slurm_job.h"
#include "protocol/host_name.h"

namespace footplate {
namespace {

constexpr std::chrono::seconds kScontrolTakes{10};
constexpr int kMostTasks = 4096;

std::string value_of(const Environment& environment, const char* name) {
  const auto found = environment.find(name);
  return found == environment.end() ? "" : found->second;
}

/// Of the beginning of `text`; 0: it has none.
int leading_number(std::string_view text) {
  int value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

/// "n[1-3,7]" as names: Slurm's own program knows all forms of it.
Result<std::vector<Host>> hosts_in(const std::string& node_list) {
  const auto unread = [&node_list](const std::string& why) {
    return fail(ErrorKind::failed, "can't tell the hosts of Slurm's list " + printable(node_list) + ": " +
                                       why + "; name them with --host");
  };
  const auto program = find_program("scontrol");
  if (!program) return unread("there is no scontrol in PATH");
  const auto answer =
      ask_program(*program, {"show", "hostnames", node_list}, "", STDOUT_FILENO, kScontrolTakes);
  if (!answer) return unread(answer.error().message);
  if (!answer->in_time || answer->code != 0) return unread("scontrol show hostnames fails");
  std::vector<Host> hosts;
  std::istringstream lines(answer->text);
  for (std::string name; std::getline(lines, name);)
    if (!name.empty()) hosts.push_back({.name = name});
  return hosts;
}

Result<std::vector<Host>> hosts_of_slurm(const Environment& environment) {
  if (leading_number(value_of(environment, "SLURM_JOB_NUM_NODES")) < 2)
    return std::vector<Host>{{.name = host_name()}};
  auto hosts = hosts_in(value_of(environment, "SLURM_JOB_NODELIST"));
  if (!hosts) return hosts;
  // Those of a step are of the step's hosts.
  const auto tasks = is_in_step(environment) ? std::vector<int>()
                                             : tasks_per_node(value_of(environment, "SLURM_TASKS_PER_NODE"));
  const int devices = leading_number(value_of(environment, "SLURM_GPUS_ON_NODE"));
  for (std::size_t i = 0; i < hosts->size(); ++i)
    (*hosts)[i].slots = std::max({1, devices, tasks.size() == hosts->size() ? tasks[i] : 1});
  return hosts;
}

Result<std::vector<Host>> hosts_of_job(const Environment& environment) {
  if (slurm_job(environment)) return hosts_of_slurm(environment);
  if (const std::string file = value_of(environment, "PBS_NODEFILE"); !file.empty())
    return read_hostfile(file);  // a line for each slot
  return hosts_of_lsf(value_of(environment, "LSB_MCPU_HOSTS"));
}

}  // namespace

Result<std::optional<std::vector<Host>>> allocated_hosts(const Environment& environment) {
  using Hosts = std::optional<std::vector<Host>>;
  auto hosts = hosts_of_job(environment);
  if (!hosts) return tl::unexpected(hosts.error());
  // Slurm's names of nodes needn't be names of hosts.
  const std::string node = value_of(environment, "SLURMD_NODENAME");
  const auto own = std::find_if(hosts->begin(), hosts->end(), [&node](const Host& host) {
    return host.name == node || is_own_name(host.name);
  });
  if (own == hosts->end()) return Hosts();
  if (hosts->size() == 1) return Hosts(std::in_place);
  std::rotate(hosts->begin(), own, own + 1);
  return Hosts(*std::move(hosts));
}

std::vector<int> tasks_per_node(std::string_view text) {
  std::vector<int> tasks;
  while (!text.empty()) {
    const auto comma = text.find(',');
    const std::string_view part = text.substr(0, comma);
    const auto times = part.find("(x");
    const int count = leading_number(part);
    const int nodes = times == std::string_view::npos ? 1 : leading_number(part.substr(times + 2));
    if (count < 1 || count > kMostTasks || nodes < 1 || nodes > kMostTasks) return {};
    tasks.insert(tasks.end(), static_cast<std::size_t>(nodes), count);
    text = comma == std::string_view::npos ? "" : text.substr(comma + 1);
  }
  return tasks;
}

std::vector<Host> hosts_of_lsf(const std::string& text) {
  std::vector<Host> hosts;
  std::istringstream words(text);
  for (Host host; words >> host.name >> host.slots;) hosts.push_back(host);
  return hosts;
}

}  // namespace footplate
