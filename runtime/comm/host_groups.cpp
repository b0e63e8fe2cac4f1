#include "runtime/comm/host_groups.h"

#include <algorithm>
#include <cstddef>
#include <map>

namespace footplate {
namespace {

/// A rank's place among those of its host.
struct Place {
  int host = 0;
  std::size_t index = 0;
};

}  // namespace

HostGroups::HostGroups(const std::vector<int>& host_of, int rank)
    : ranks_(static_cast<int>(host_of.size())), rank_(rank) {
  std::map<int, std::vector<int>> ranks_of;
  std::vector<Place> places;
  for (int one = 0; one < ranks_; ++one) {
    const int host = host_of[static_cast<std::size_t>(one)];
    places.push_back({host, ranks_of[host].size()});
    ranks_of[host].push_back(one);
  }
  const Place own = places[static_cast<std::size_t>(rank)];
  own_ = own.index;
  const auto carrier = [&](const std::vector<int>& ranks, std::size_t index) {
    return ranks[index % ranks.size()];
  };
  const std::vector<int>& group = ranks_of[own.host];
  collected_by_.assign(group.size(), {});
  for (int one = 0; one < ranks_; ++one) {
    const Place& place = places[static_cast<std::size_t>(one)];
    collected_by_[place.index % group.size()].push_back(one);
    if (place.host != own.host && carrier(group, place.index) == rank) carried_.push_back(one);
  }
  for (const int one : group)
    if (one != rank) neighbours_.push_back(one);
  for (const auto& [host, ranks] : ranks_of) {
    if (host != own.host) carriers_.push_back(carrier(ranks, own.index));
    have_two_levels_ = have_two_levels_ || (ranks.size() > 1 && ranks_of.size() > 1);
  }
}

}  // namespace footplate
