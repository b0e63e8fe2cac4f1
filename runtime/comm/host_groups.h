#pragma once

#include <vector>

namespace footplate {

/// Which ranks share a host, and who speaks for a host with the others, for collectives in two levels
/// (comm.hierarchy). Each rank has a block of a buffer. On every other host one rank carries that block: it
/// sums it up there, sends the sum on, and hands round what comes back. So a block crosses the network once
/// in each direction for each host, and the ranks of a host carry as many blocks each, or one more.
class HostGroups {
 public:
  /// No ranks: nothing to group.
  HostGroups() = default;
  /// `host_of`: by rank, any numbers; ranks with the same one share a host.
  HostGroups(const std::vector<int>& host_of, int rank);

  /// Whether there are several hosts, and one of them has several ranks: else two levels are one.
  bool have_two_levels() const { return have_two_levels_; }
  int ranks() const { return ranks_; }
  int rank() const { return rank_; }

  /// The other ranks of this host, in their order.
  const std::vector<int>& neighbours() const { return neighbours_; }
  /// The ranks whose blocks this rank sums up on its host: its own and those that it carries, in their order.
  const std::vector<int>& collected() const { return collected_by_[own_]; }
  /// The same of neighbour `i` of neighbours().
  const std::vector<int>& collected_by(std::size_t i) const { return collected_by_[i < own_ ? i : i + 1]; }
  /// The ranks of other hosts whose blocks this rank carries, in their order.
  const std::vector<int>& carried() const { return carried_; }
  /// Who carries this rank's block on the other hosts, a rank of each.
  const std::vector<int>& carriers() const { return carriers_; }

 private:
  int ranks_ = 0;
  int rank_ = 0;
  bool have_two_levels_ = false;
  std::size_t own_ = 0;  ///< this rank's place among those of its host
  std::vector<int> neighbours_, carried_, carriers_;
  std::vector<std::vector<int>> collected_by_ = {{}};  ///< of this host's ranks
};

}  // namespace footplate
