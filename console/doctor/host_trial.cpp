// What `footplate doctor --host` tries: processes on other hosts, started by mpirun as a run's would be.
#include "console/client/runs/run_record.h"
#include "console/doctor/rank_trials.h"
#include "console/doctor/readings.h"
#include "console/launch/start/launch_failure.h"

namespace footplate {
namespace {

using namespace std::chrono_literals;

// Far more than a host takes that answers at all; a program that is read over a network for the first time
// takes seconds.
constexpr auto kStartTakes = 60s;
constexpr auto kTogetherTakes = 180s;
constexpr std::int64_t kElements = 4'000'000;  ///< as between the ranks of one machine

constexpr const char* kReachEachOther =
    "hosts have to reach each other on any TCP port, or on those of comm.ports (firewall); where they have "
    "several networks, name the one that all share: comm.network=10.1.0.0/16 (or "
    "OMPI_MCA_btl_tcp_if_include)";

/// "/opt/mpi" of "/opt/mpi/lib/libmpi.so.40".
std::string prefix_of(const LibrariesAnswer& libraries) {
  return std::filesystem::path(libraries.mpi_file).parent_path().parent_path().string();
}

}  // namespace

Check Trials::host(const Host& host, const LibrariesAnswer& here) {
  const auto answer = ask_ranks<LibrariesAnswer>(1, {"--doctor", "versions"}, kStartTakes, {host});
  if (answer) return check_host(host, *answer, here);
  const LaunchFailure failure = explain_launch(read_text(err()), host.name, prefix_of(here));
  Check check{.name = "host " + host.name};
  check.values = {{"slots", host.slots}};
  std::string found = "starts no process";
  if (answer.error().kind == ErrorKind::timed_out)
    found += " within " + std::to_string(kStartTakes.count()) + " s";
  const std::string& said = answer.error().message;
  if (!failure.why.empty() || !said.empty()) found += ": " + (failure.why.empty() ? said : failure.why);
  return to_mend(std::move(check), std::move(found), failure.mend);
}

Check Trials::hosts_together(const std::vector<Host>& hosts) {
  Check check{.name = "hosts together"};
  const std::string between = std::to_string(hosts.size()) + " hosts";
  const auto answer = ask_ranks<ReductionAnswer>(
      static_cast<int>(hosts.size()), {"--doctor", "reduce", "--elements", std::to_string(kElements)},
      kTogetherTakes, hosts);
  if (!answer)
    return to_mend(std::move(check), "no all-reduce between " + between + ": " + answer.error().message,
                   std::string(kReachEachOther) + "; the links below tell which pair it is");
  return judge_reduction(std::move(check), *answer, between);
}

Check Trials::link(const Host& a, const Host& b) {
  const auto answer = ask_ranks<LinkAnswer>(2, {"--doctor", "link"}, kStartTakes, {a, b});
  if (!answer)
    return to_mend(Check{.name = link_name(a, b)}, "nothing gets through: " + answer.error().message,
                   kReachEachOther);
  return check_link(link_name(a, b), *answer);
}

}  // namespace footplate
