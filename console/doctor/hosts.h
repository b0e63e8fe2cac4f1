#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "console/doctor/finding.h"
#include "console/doctor/trial_answers_json.h"
#include "protocol/result.h"

namespace footplate {

// Several hosts: which ones are meant, and what it means where one doesn't start a process. Nothing here
// looks at anything but the file.

/// A host as `mpirun` takes it.
struct Host {
  std::string name;
  int slots = 1;  ///< ranks that a run would start there
};

/// "n1,n2:4", as of Open MPI's --host: a name that comes again adds its slots. Errors (usage): no name, a
/// character that no name has, slots that are no number from 1 to 4096.
Result<std::vector<Host>> parse_hosts(std::string_view list);

/// Lines "n2 slots=4 max-slots=8" with comments from # on, as of Open MPI's --hostfile; max-slots is not
/// used. Errors (usage): the file, a line with its number, no host in it.
Result<std::vector<Host>> read_hostfile(const std::filesystem::path& path);

/// Pairs of numbers from 0 on: all where there are at most kAllPairs hosts, else neighbours in a ring.
inline constexpr std::size_t kAllPairs = 8;
std::vector<std::pair<std::size_t, std::size_t>> pairs_to_measure(std::size_t hosts);

/// Why a process on a host didn't start.
struct LaunchFailure {
  std::string why;   ///< what ssh or mpirun said, one line; empty: nothing
  std::string mend;  ///< for this host
};
/// `said`: all that mpirun and ssh wrote; `prefix`: where Open MPI is here.
LaunchFailure explain_launch(std::string_view said, const std::string& host, const std::string& prefix);

/// `there` and `here`: what footplate-rank says of its libraries (`--doctor versions`) on the host and on
/// this machine.
Check check_host(const Host& host, const LibrariesAnswer& there, const LibrariesAnswer& here);

/// `answer`: of `footplate-rank --doctor link` between the two.
Check check_link(const std::string& name, const LinkAnswer& answer);

/// "link n1 - n2".
std::string link_name(const Host& a, const Host& b);

}  // namespace footplate
