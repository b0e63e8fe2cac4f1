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

std::vector<Stretch> within(const Stretch& whole, const std::vector<Stretch>& blocks) {
  std::vector<Stretch> inside;
  for (const Stretch& block : blocks) {
    const Stretch both{std::max(whole.first, block.first), std::min(whole.end, block.end)};
    if (both.first < both.end) inside.push_back(both);
  }
  return inside;
}

}  // namespace footplate
