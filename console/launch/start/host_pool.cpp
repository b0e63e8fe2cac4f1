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

int slots_left(const Host& host, const std::map<std::string, int>& failed) {
  const auto devices = failed.find(host.name);
  return devices != failed.end() ? host.slots - devices->second : host.slots;
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
  int ranks = std::min(pool.ranks, slots_of(taken));
  int left = static_cast<int>(taken.size());
  for (Host& host : taken) {
    const int share = (ranks + left - 1) / left;  // the first ones have one more
    --left;
    host.slots = std::min(host.slots, pool.shares_evenly ? share : ranks);
    ranks -= host.slots;
  }
  std::erase_if(taken, [](const Host& host) { return host.slots == 0; });
  return taken;
}

int ranks_without(const HostPool& pool, int failed) {
  // Where there are more devices than ranks, another one takes its place.
  const int room = (pool.devices > 0 ? pool.devices : pool.ranks) - failed;
  return std::max(0, std::min(pool.ranks, room));
}

}  // namespace footplate
