#include "runtime/comm/shares.h"

namespace footplate {

std::vector<Stretch> blocks_of(std::int64_t elements, int ranks, int rank) {
  std::vector<Stretch> blocks;
  in_stripes(elements, ranks, [&](std::int64_t first, std::int64_t block) {
    const std::int64_t mine = first + rank * block;
    if (block > 0) blocks.push_back({mine, mine + block});
    return true;
  });
  return blocks;
}

int distance_of_copies(const std::vector<int>& hosts) {
  const auto ranks = static_cast<int>(hosts.size());
  const auto apart = [&](int distance) {
    int count = 0;
    for (int rank = 0; rank < ranks; ++rank)
      if (hosts[static_cast<std::size_t>(rank)] !=
          hosts[static_cast<std::size_t>(rank_after(rank, ranks, distance))])
        ++count;
    return count;
  };
  int best = 1;
  for (int distance = 2; distance < ranks; ++distance)
    if (apart(distance) > apart(best)) best = distance;
  return best;
}

std::vector<Stretch> within(const Stretch& whole, const std::vector<Stretch>& blocks) {
  std::vector<Stretch> inside;
  auto block = std::ranges::upper_bound(blocks, whole.first, {}, &Stretch::end);
  for (; block != blocks.end() && block->first < whole.end; ++block)
    if (whole.first < whole.end)
      inside.push_back({std::max(whole.first, block->first), std::min(whole.end, block->end)});
  return inside;
}

}  // namespace footplate
