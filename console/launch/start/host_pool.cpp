#include "console/launch/start/host_pool.h"

#include <algorithm>
#include <utility>

namespace footplate {

Result<HostPool> make_host_pool(std::vector<Host> hosts, int spare, int ranks) {
  const int count = static_cast<int>(hosts.size());
  if (spare < 0 || spare >= count)
    return fail(ErrorKind::usage, "--spare " + std::to_string(spare) + " leaves no host of " +
                                      std::to_string(count) + " for the ranks; it takes 0 to " +
                                      std::to_string(count - 1) + " here");
  HostPool pool{.hosts = std::move(hosts), .in_use = count - spare};
  const std::vector<Host> first(pool.hosts.begin(), pool.hosts.begin() + pool.in_use);
  pool.ranks = ranks > 0 ? ranks : slots_of(first);
  const auto spread_over = spread(first, pool.ranks);
  if (!spread_over) return tl::unexpected(spread_over.error());
  pool.in_use = static_cast<int>(spread_over->size());
  pool.shares_evenly =
      std::all_of(pool.hosts.begin(), pool.hosts.end(), [](const Host& host) { return host.slots == 1; });
  if (pool.shares_evenly)
    for (Host& host : pool.hosts) host.slots = spread_over->front().slots;  // no other one has more
  return pool;
}

std::string named_hosts(const HostPool& pool) {
  if (!pool.shares_evenly) return host_list_text(pool.hosts);
  std::string text;
  for (const Host& host : pool.hosts) text += (text.empty() ? "" : ",") + host.name;
  return text;
}

namespace {

/// Also "n1" and "n1.cluster.org".
bool is_same_host(const std::string& one, const std::string& other) {
  const auto dot = one.find('.'), other_dot = other.find('.');
  if (dot != one.npos && other_dot != other.npos) return one == other;
  return one.substr(0, dot) == other.substr(0, other_dot);
}

int slots_left(const Host& host, const std::map<std::string, int>& failed) {
  int slots = host.slots;
  for (const auto& [name, devices] : failed)
    if (is_same_host(name, host.name)) slots -= devices;
  return slots;
}

/// One after the other, as far as each has room.
void share_evenly(std::vector<Host>& hosts, int ranks) {
  std::vector<int> shares(hosts.size());
  while (ranks > 0)
    for (std::size_t i = 0; i < hosts.size() && ranks > 0; ++i) {
      if (shares[i] == hosts[i].slots) continue;
      ++shares[i];
      --ranks;
    }
  for (std::size_t i = 0; i < hosts.size(); ++i) hosts[i].slots = shares[i];
}

/// The first ones first.
void fill(std::vector<Host>& hosts, int ranks) {
  for (Host& host : hosts) {
    host.slots = std::min(host.slots, ranks);
    ranks -= host.slots;
  }
}

}  // namespace

std::vector<Host> take_hosts(const HostPool& pool, const std::set<std::string>& silent,
                             const std::map<std::string, int>& failed) {
  std::vector<Host> taken;
  if (slots_left(pool.hosts.front(), failed) <= 0) return taken;
  for (Host host : pool.hosts) {
    host.slots = slots_left(host, failed);
    if (static_cast<int>(taken.size()) < pool.in_use && !silent.contains(host.name) && host.slots > 0)
      taken.push_back(std::move(host));
  }
  const int ranks = std::min(pool.ranks, slots_of(taken));
  if (pool.shares_evenly)
    share_evenly(taken, ranks);
  else
    fill(taken, ranks);
  std::erase_if(taken, [](const Host& host) { return host.slots == 0; });
  return taken;
}

int ranks_without(const HostPool& pool, int failed) {
  // Where there are more devices than ranks, another one takes its place.
  const int room = (pool.devices > 0 ? pool.devices : pool.ranks) - failed;
  return std::max(0, std::min(pool.ranks, room));
}

}  // namespace footplate
