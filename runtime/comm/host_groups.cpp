#include "runtime/comm/host_groups.h"

#include <algorithm>
#include <cstddef>
#include <map>

namespace footplate {
namespace {

using Ranks = std::vector<int>;

/// By rank: who collects its block on a host whose ranks are `group`. Those of the group their own; the
/// others' are dealt out to the group one after the other.
Ranks collectors(const std::vector<int>& host_of, int host, const Ranks& group) {
  Ranks collectors;
  std::size_t dealt = 0;
  for (int rank = 0; rank < static_cast<int>(host_of.size()); ++rank)
    collectors.push_back(host_of[static_cast<std::size_t>(rank)] == host ? rank
                                                                         : group[dealt++ % group.size()]);
  return collectors;
}

}  // namespace

HostGroups::HostGroups(const std::vector<int>& host_of, int rank)
    : ranks_(static_cast<int>(host_of.size())), rank_(rank) {
  std::map<int, Ranks> groups;
  for (int one = 0; one < ranks_; ++one) groups[host_of[static_cast<std::size_t>(one)]].push_back(one);
  const int own_host = host_of[static_cast<std::size_t>(rank)];
  for (const auto& [host, group] : groups) {
    have_two_levels_ = have_two_levels_ || (group.size() > 1 && groups.size() > 1);
    if (host != own_host)
      carriers_.push_back(collectors(host_of, host, group)[static_cast<std::size_t>(rank)]);
  }
  const Ranks& group = groups[own_host];
  own_ = static_cast<std::size_t>(std::find(group.begin(), group.end(), rank) - group.begin());
  for (const int one : group)
    if (one != rank) neighbours_.push_back(one);
  collected_by_.assign(group.size(), {});
  const Ranks collector = collectors(host_of, own_host, group);
  for (int one = 0; one < ranks_; ++one) {
    const auto place = std::find(group.begin(), group.end(), collector[static_cast<std::size_t>(one)]);
    collected_by_[static_cast<std::size_t>(place - group.begin())].push_back(one);
  }
  for (const int one : collected())
    if (one != rank) carried_.push_back(one);
}

}  // namespace footplate
