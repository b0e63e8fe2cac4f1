#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "console/launch/start/host_list.h"
#include "protocol/result.h"

namespace footplate {

/// The hosts that the starts of a run may be on: those in use, then the spare ones. A start takes the first
/// ones that answer.
struct HostPool {
  std::vector<Host> hosts;  ///< this machine first, each with the ranks that it may get; empty: one machine
  int in_use = 0;           ///< hosts that a start is on, where so many answer
  int ranks = 0;            ///< that are wanted; fewer where the hosts that answer have no room
  int devices = 0;          ///< on one machine: that a process sees; 0: none
  bool shares_evenly = false;  ///< no slots were written

  int spare() const { return static_cast<int>(hosts.size()) - in_use; }
};

/// `hosts` as of --host, the last `spare` of them spare; so are those that `ranks` leave without one. `ranks`
/// 0: as many as the hosts in use have slots. Errors (usage): spread()'s; as many spare hosts as hosts, or
/// more.
Result<HostPool> make_host_pool(std::vector<Host> hosts, int spare, int ranks);

/// As --host had it: make_host_pool() makes the same of it.
std::string named_hosts(const HostPool& pool);

/// The hosts of the next start, with the ranks that each gets. `silent`: the names of those that start no
/// process; this machine isn't among them. `failed`: by name, how many devices of a host are left out. None:
/// this machine has none left.
std::vector<Host> take_hosts(const HostPool& pool, const std::set<std::string>& silent,
                             const std::map<std::string, int>& failed = {});

/// On one machine, of which so many devices are left out: the ranks of the next start.
int ranks_without(const HostPool& pool, int failed);

}  // namespace footplate
