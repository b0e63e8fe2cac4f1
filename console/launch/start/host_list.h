#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "protocol/result.h"

namespace footplate {

// Several hosts: which ones are meant, and how many ranks each gets. Nothing here looks at anything but the
// hostfile.

/// comm.network: the networks that the hosts' names lead to.
inline constexpr const char* kAutoNetwork = "auto";

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

/// "n1:1,n2:4": parse_hosts() reads it.
std::string host_list_text(const std::vector<Host>& hosts);

int slots_of(const std::vector<Host>& hosts);

/// The hosts with as many slots as `ranks`. Hosts of one slot each, as where none was written, share the
/// ranks evenly, the first ones have one more. Else ranks fill the slots from the first host on, and a host
/// that gets none is left out. Error (usage): more ranks than the slots that were written.
Result<std::vector<Host>> spread(std::vector<Host> hosts, int ranks);

}  // namespace footplate
