#pragma once

#include <vector>

#include "runtime/comm/rank_set.h"

namespace footplate {

/// Who passes messages on to whom: a tree of all ranks with rank 0 on top, the same on every rank. Neighbours
/// by number, which mostly are on one host, are neighbours in it. Some ranks pass nothing on: those are right
/// below rank 0, as leaves.
class TreeLayout {
 public:
  /// `fan_out`: how many ranks one passes on to, at most (rank 0: besides `leaves`). `leaves`: in order,
  /// without rank 0.
  TreeLayout(int world_size, int fan_out, std::vector<int> leaves = {});

  struct Child {
    int rank = 0;
    RankSet ranks;  ///< it, and those below it
  };
  struct Place {
    int parent = 0;  ///< of rank 0: itself
    std::vector<Child> children;
    int height = 0;  ///< how many times a message is passed on below, at most
  };
  Place place_of(int rank) const;

  /// Whether all are right below rank 0.
  bool is_star() const { return relaying_ - 1 <= fan_out_; }
  const std::vector<int>& leaves() const { return leaves_; }

 private:
  /// Of those that aren't in leaves_, by their places among them: the first passes on to the rest.
  struct Block {
    int begin = 0;
    int end = 0;
  };
  std::vector<Block> parts_of(const Block& block) const;
  int rank_at(int position) const;
  int position_of(int rank) const;
  RankSet ranks_of(const Block& block) const;
  int height_of(int size) const;

  int fan_out_;
  std::vector<int> leaves_;
  int relaying_;  ///< ranks that aren't in leaves_
};

}  // namespace footplate
