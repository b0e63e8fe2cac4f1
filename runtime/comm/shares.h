#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace footplate {

// How a flat buffer is cut among the ranks: into stripes, each of which is one block after the other, a block
// for each rank in rank order. A rank's share of the buffer are its blocks. Stripes can be reduced one after
// the other, as soon as what is in them is there, and each of them keeps all ranks busy.

/// Elements at which blocks begin: a cache line of floats.
inline constexpr std::int64_t kBlockAlign = 16;

/// Elements of a rank's block. Over MPI, two ranks on one host, 100 M floats: 0.5 M is as good as any size
/// from 0.25 M on (measured once, in a program with other sizes). A stripe of many ranks stays below
/// kLargestStripe.
inline constexpr std::int64_t kLargestBlock = std::int64_t{1} << 19;
inline constexpr std::int64_t kLargestStripe = std::int64_t{1} << 24;

/// Elements of a stripe among so many ranks. Only a buffer's last one is shorter.
constexpr std::int64_t stripe_of(int ranks) {
  const std::int64_t block = std::min(kLargestBlock, kLargestStripe / ranks / kBlockAlign * kBlockAlign);
  return std::max(block, kBlockAlign) * ranks;
}

/// The fewest elements from `elements` on that can be cut among so many ranks.
constexpr std::int64_t padded(std::int64_t elements, int ranks) {
  const std::int64_t together = kBlockAlign * ranks;
  return (elements + together - 1) / together * together;
}

/// Calls `run(first, block)` for one stripe after the other, until one returns false: the stripe is
/// [first, first + ranks * block), and rank R's block begins at first + R * block. Returns whether all were
/// run. `elements`: a multiple of `ranks`.
template <class Run>
bool in_stripes(std::int64_t elements, int ranks, Run run) {
  const std::int64_t stripe = stripe_of(ranks);
  for (std::int64_t first = 0; first < elements; first += stripe)
    if (!run(first, std::min(stripe, elements - first) / ranks)) return false;
  return true;
}

/// Whom a rank passes its share to, and whose it gets; `distance`: as of Communicator::pass_shares().
constexpr int rank_after(int rank, int ranks, int distance) {
  return (rank + distance) % ranks;
}
constexpr int rank_before(int rank, int ranks, int distance) {
  return (rank + ranks - distance % ranks) % ranks;
}

/// How far apart a share and its copy are kept best: on different hosts, for as many ranks as can be; 1 where
/// there is one host. `hosts`: as of Communicator::host_numbers().
int distance_of_copies(const std::vector<int>& hosts);

/// Elements [first, end) of a buffer.
struct Stretch {
  std::int64_t first = 0, end = 0;
  std::int64_t size() const { return end - first; }
  bool operator==(const Stretch&) const = default;
};

/// The blocks of `rank` in a buffer of so many elements, in their order. Arguments as of in_stripes().
std::vector<Stretch> blocks_of(std::int64_t elements, int ranks, int rank);

/// What of `whole` lies in `blocks`, which are in their order.
std::vector<Stretch> within(const Stretch& whole, const std::vector<Stretch>& blocks);

}  // namespace footplate
