#include "runtime/comm/tree/tree_layout.h"

#include <algorithm>
#include <utility>

namespace footplate {

TreeLayout::TreeLayout(int world_size, int fan_out, std::vector<int> leaves)
    : fan_out_(std::max(2, fan_out)),
      leaves_(std::move(leaves)),
      relaying_(world_size - static_cast<int>(leaves_.size())) {}

int TreeLayout::rank_at(int position) const {
  int rank = position;
  for (const int leaf : leaves_)
    if (leaf <= rank) ++rank;
  return rank;
}

int TreeLayout::position_of(int rank) const {
  return rank - static_cast<int>(std::lower_bound(leaves_.begin(), leaves_.end(), rank) - leaves_.begin());
}

RankSet TreeLayout::ranks_of(const Block& block) const {
  RankSet ranks(rank_at(block.begin), rank_at(block.end - 1));
  for (const int leaf : leaves_) ranks.remove(leaf);
  return ranks;
}

/// What is below the first of a block, cut into nearly equal blocks.
std::vector<TreeLayout::Block> TreeLayout::parts_of(const Block& block) const {
  std::vector<Block> parts;
  const int below = block.end - block.begin - 1;
  const int count = std::min(below, fan_out_);
  int begin = block.begin + 1;
  for (int part = 0; part < count; ++part) {
    const int end = begin + below / count + (part < below % count ? 1 : 0);
    parts.push_back({begin, end});
    begin = end;
  }
  return parts;
}

int TreeLayout::height_of(int size) const {
  int height = 0;
  for (; size > 1; ++height) size = (size - 1 + fan_out_ - 1) / fan_out_;  // of the first part, the largest
  return height;
}

TreeLayout::Place TreeLayout::place_of(int rank) const {
  if (std::binary_search(leaves_.begin(), leaves_.end(), rank)) return {};
  const int position = position_of(rank);
  Place place;
  Block block{0, relaying_};
  while (block.begin != position) {
    place.parent = rank_at(block.begin);
    for (const Block& part : parts_of(block))
      if (part.begin <= position && position < part.end) {
        block = part;
        break;
      }
  }
  for (const Block& part : parts_of(block)) place.children.push_back({rank_at(part.begin), ranks_of(part)});
  if (rank == 0)
    for (const int leaf : leaves_) place.children.push_back({leaf, RankSet(leaf)});
  place.height = height_of(block.end - block.begin);
  return place;
}

}  // namespace footplate
