#include "console/doctor/host_checks.h"

#include "console/client/render/render.h"
#include "console/client/runs/run_record.h"

namespace footplate {
namespace {

constexpr double kLeastBandwidth = 0.02;  ///< GB/s; Ethernet of 1 Gbit/s has 0.11

}  // namespace

std::vector<std::pair<std::size_t, std::size_t>> pairs_to_measure(std::size_t hosts) {
  std::vector<std::pair<std::size_t, std::size_t>> pairs;
  if (hosts > kAllPairs) {
    for (std::size_t a = 0; a < hosts; ++a) pairs.emplace_back(a, (a + 1) % hosts);
    return pairs;
  }
  for (std::size_t a = 0; a < hosts; ++a)
    for (std::size_t b = a + 1; b < hosts; ++b) pairs.emplace_back(a, b);
  return pairs;
}

Check check_host(const Host& host, const LibrariesAnswer& there, const LibrariesAnswer& here) {
  Check check{.name = "host " + host.name};
  check.values = there.all;
  check.values["slots"] = host.slots;
  const std::string own_name = there.host.empty() ? host.name : there.host;
  check.found = "starts a process" + (own_name == host.name ? "" : " (its own name is " + own_name + ")");
  if (there.cores > 0)
    check.found += ", " + std::to_string(there.cores) + (there.cores == 1 ? " core" : " cores");
  check.found += ", " + std::to_string(host.slots) + (host.slots == 1 ? " slot" : " slots");
  std::string other;
  const auto compare = [&](const char* what, const std::string& a, const std::string& b) {
    if (a != b)
      other += (other.empty() ? "" : "; ") + std::string(what) + ": " + a + " there, " + b + " here";
  };
  compare("footplate", there.footplate, here.footplate);
  compare("libtorch", there.libtorch, here.libtorch);
  compare("mpi", there.mpi, here.mpi);
  compare("mpi_file", there.mpi_file, here.mpi_file);
  if (other.empty()) {
    check.found += "; programs and libraries are those of this machine";
    return check;
  }
  check.verdict = Verdict::to_mend;
  check.found += ", but not as here: " + other;
  check.mend = "one version on all hosts: scripts/run on " + host.name + ", or a folder that all hosts share";
  return check;
}

Check check_link(const std::string& name, const LinkAnswer& answer) {
  Check check{.name = name};
  check.values = answer.all;
  check.found = rounded(answer.gb_per_s, 3) + " GB/s, " + rounded(answer.latency_us, 3) + " µs one way";
  if (answer.hosts.size() == 2 && answer.hosts[0] == answer.hosts[1])
    check.found += "; both names are " + answer.hosts[0] + ": measured inside one host";
  if (answer.gb_per_s >= kLeastBandwidth) return check;
  check.verdict = Verdict::to_mend;
  check.found += ", which is very slow";
  check.mend =
      "see which network it goes over (ip route get, ethtool), and name a faster one for Open MPI: "
      "OMPI_MCA_btl_tcp_if_include=eth1";
  return check;
}

std::string link_name(const Host& a, const Host& b) {
  return "link " + a.name + " - " + b.name;
}

}  // namespace footplate
