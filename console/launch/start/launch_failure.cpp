#include "console/launch/start/launch_failure.h"

#include <algorithm>
#include <array>
#include <sstream>
#include <vector>

namespace footplate {
namespace {

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
      "ssh -o BatchMode=yes HOST true has to work; hosts have to reach each other on any TCP port, or on "
      "those of comm.ports (firewall); "
      "Open MPI has to be at the same path on HOST: PREFIX",
      "HOST", host);
  return {lines.empty() ? "" : lines.front(), filled(mend, "PREFIX", prefix)};
}

std::string unreached_host(std::string_view said) {
  constexpr std::string_view kLine = "Remote host:";
  const auto line = said.rfind(kLine);
  if (line == std::string_view::npos) return {};
  const auto begin = said.find_first_not_of(' ', line + kLine.size());
  const auto end = said.find_first_of(" \n", std::min(begin, said.size()));
  return begin == std::string_view::npos ? "" : std::string(said.substr(begin, end - begin));
}

std::string explain_unreached(std::string_view said, const std::string& prefix) {
  const std::string host = unreached_host(said);
  if (host.empty()) return {};
  const LaunchFailure failure = explain_launch(said, host, prefix);
  return "host " + host + " starts no process" + (failure.why.empty() ? "" : ": " + failure.why) +
         "; check: " + failure.mend;
}

}  // namespace footplate
