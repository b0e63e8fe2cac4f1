#include "console/doctor/hosts.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <fstream>
#include <sstream>

#include "console/client/render/render.h"
#include "console/client/runs/run_record.h"

namespace footplate {
namespace {

constexpr int kMostSlots = 4096;
constexpr std::size_t kMostHosts = 4096;
constexpr double kLeastBandwidth = 0.02;  ///< GB/s; Ethernet of 1 Gbit/s has 0.11
constexpr const char* kNameCharacters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_";

/// A name that starts with a dash would be an option of ssh.
Result<void> check_name(std::string_view name) {
  if (name.empty()) return fail(ErrorKind::usage, "a host without a name; give them as n1,n2:4");
  if (name.front() == '-')
    return fail(ErrorKind::usage, "'" + std::string(name) + "' is no host's name: it begins with '-'");
  const auto odd = name.find_first_not_of(kNameCharacters);
  if (odd != std::string_view::npos)
    return fail(ErrorKind::usage, "'" + std::string(name) + "' is no host's name: it has '" +
                                      std::string(1, name[odd]) +
                                      "'; names have letters, digits, '.', '-' and '_', and end with :SLOTS "
                                      "where a run starts more than one rank");
  return {};
}

Result<int> parse_slots(std::string_view text, std::string_view name) {
  int slots = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), slots);
  if (error == std::errc{} && end == text.data() + text.size() && slots >= 1 && slots <= kMostSlots)
    return slots;
  return fail(ErrorKind::usage, "slots of " + std::string(name) + " can't be '" + std::string(text) +
                                    "': a number from 1 to " + std::to_string(kMostSlots));
}

Result<void> add(std::vector<Host>& hosts, std::string_view name, int slots) {
  if (auto good = check_name(name); !good) return good;
  const auto known =
      std::find_if(hosts.begin(), hosts.end(), [&](const Host& host) { return host.name == name; });
  if (known != hosts.end())
    known->slots = std::min(known->slots + slots, kMostSlots);
  else if (hosts.size() < kMostHosts)
    hosts.push_back({std::string(name), slots});
  else
    return fail(ErrorKind::usage, "more than " + std::to_string(kMostHosts) + " hosts");
  return {};
}

Result<void> add_line(std::vector<Host>& hosts, const std::string& line) {
  std::istringstream words(line.substr(0, line.find('#')));
  std::string name;
  if (!(words >> name)) return {};
  int slots = 1;
  for (std::string word; words >> word;) {
    const std::string key = word.substr(0, word.find('='));
    if (key == "max-slots" || key == "max_slots") continue;
    if (key != "slots" || key.size() == word.size())
      return fail(ErrorKind::usage, "'" + word + "' is not known; a line is: n2 slots=4");
    auto parsed = parse_slots(std::string_view(word).substr(key.size() + 1), name);
    if (!parsed) return tl::unexpected(parsed.error());
    slots = *parsed;
  }
  return add(hosts, name, slots);
}

/// What is said where one can't be reached, and what helps; the first that fits counts.
struct Known {
  const char* said;
  const char* mend;  ///< HOST and PREFIX stand for what they are
};
constexpr std::array<Known, 13> kKnown{{
    {"Could not resolve hostname",
     "is the name right? getent hosts HOST; name it in /etc/hosts, or in the DNS"},
    {"Connection refused",
     "no ssh server listens on HOST: install and start it there (systemctl enable --now ssh)"},
    {"timed out", "HOST is off, or a firewall drops what comes: ping HOST; ssh HOST true"},
    {"No route to host", "HOST is off, or in a network that no route leads to: ping HOST; ip route get HOST"},
    {"Network is unreachable", "no route leads to HOST: ip route get HOST"},
    {"Host key verification failed", "say once that its key is right: ssh HOST true"},
    {"Permission denied",
     "ssh has to come in without a password: ssh-copy-id HOST; try it with ssh -o BatchMode=yes HOST true"},
    {"Too many authentication failures",
     "ssh has to come in with its first key: ssh -o BatchMode=yes HOST true"},
    {"prted:",
     "Open MPI has to be at the same path on HOST: PREFIX (scripts/deps there, or a folder that all hosts "
     "share)"},
    {"could not access",
     "footplate has to be built at the same path on HOST (scripts/run there, or a folder that all hosts "
     "share)"},
    {"cannot open shared object file", "a library is missing on HOST: scripts/deps --check there"},
    {"No available launching agents", "install ssh here: apt-get install openssh-client"},
    {"set to a path", "unset PRTE_MCA_plm_ssh_agent, or name a program that is there"},
}};

std::string filled(std::string text, const std::string& what, const std::string& with) {
  for (auto at = text.find(what); at != std::string::npos; at = text.find(what, at + with.size()))
    text.replace(at, what.size(), with);
  return text;
}

/// Of mpirun's boxes only the text; its own warnings ("[n1:17840] …") not, nor what it says when it is ended.
bool is_said(const std::string& line) {
  return line.find_first_not_of("- ") != std::string::npos && line.front() != '[' &&
         !line.starts_with("Abort is in progress");
}

}  // namespace

Result<std::vector<Host>> parse_hosts(std::string_view list) {
  std::vector<Host> hosts;
  for (bool more = true; more;) {
    const auto comma = list.find(',');
    more = comma != std::string_view::npos;
    const std::string_view one = list.substr(0, comma);
    if (more) list.remove_prefix(comma + 1);
    const auto colon = one.find(':');
    Result<int> slots = 1;
    if (colon != std::string_view::npos) slots = parse_slots(one.substr(colon + 1), one.substr(0, colon));
    if (!slots) return tl::unexpected(slots.error());
    if (auto added = add(hosts, one.substr(0, colon), *slots); !added) return tl::unexpected(added.error());
  }
  return hosts;
}

Result<std::vector<Host>> read_hostfile(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::vector<Host> hosts;
  int number = 0;
  for (std::string line; std::getline(file, line);) {
    ++number;
    if (auto added = add_line(hosts, line); !added)
      return fail(ErrorKind::usage,
                  path.string() + ":" + std::to_string(number) + ": " + added.error().message);
  }
  if (number == 0 && !file.eof())
    return fail(ErrorKind::usage, "can't read the hostfile " + path.string() + ": it is missing, or no file");
  if (hosts.empty()) return fail(ErrorKind::usage, "no host in " + path.string() + "; a line is: n2 slots=4");
  return hosts;
}

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

LaunchFailure explain_launch(std::string_view said, const std::string& host, const std::string& prefix) {
  std::string first;
  std::vector<std::string> lines;
  std::istringstream stream{std::string(said)};
  for (std::string line; std::getline(stream, line);)
    if (is_said(line)) lines.push_back(line);
  for (const Known& known : kKnown)
    for (const std::string& line : lines)
      if (line.find(known.said) != std::string::npos)
        return {line, filled(filled(known.mend, "HOST", host), "PREFIX", prefix)};
  const std::string mend = filled(
      "ssh -o BatchMode=yes HOST true has to work; hosts have to reach each other on any TCP port "
      "(firewall); "
      "Open MPI has to be at the same path on HOST: PREFIX",
      "HOST", host);
  return {lines.empty() ? "" : lines.front(), filled(mend, "PREFIX", prefix)};
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
