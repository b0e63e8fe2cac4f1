#pragma once

#include <cstdint>

namespace footplate {

/// Part [first, last) of a sequence of samples.
struct Slice {
  std::int64_t first = 0;
  std::int64_t last = 0;
  std::int64_t size() const { return last - first; }
  bool operator==(const Slice&) const = default;
};

/// What rank `rank` of `world_size` takes of `total` samples. The slices of all ranks cover every
/// sample once; they differ by at most one, and may be empty.
constexpr Slice slice_of(std::int64_t total, int rank, int world_size) {
  return {total * rank / world_size, total * (rank + 1) / world_size};
}

/// 64 random bits that depend on the two numbers alone (splitmix64's finaliser, Steele et al. 2014):
/// the same on every rank, machine and run.
constexpr std::uint64_t counter_hash(std::uint64_t seed, std::uint64_t counter) {
  std::uint64_t bits = seed * 0xd1342543de82ef95ULL + counter * 0x9e3779b97f4a7c15ULL + 0x632be59bd9b4e019ULL;
  bits = (bits ^ (bits >> 30)) * 0xbf58476d1ce4e5b9ULL;
  bits = (bits ^ (bits >> 27)) * 0x94d049bb133111ebULL;
  return bits ^ (bits >> 31);
}

/// Which of `size` samples the `draw`-th draw of the run is, where every epoch (size draws) has each of them
/// once, in an order of its own.
std::int64_t shuffled_index(std::uint64_t seed, std::int64_t draw, std::int64_t size);

/// Where the `sample`-th sample of the run starts: evenly spread over [0, positions).
std::int64_t sample_offset(std::uint64_t seed, std::int64_t sample, std::int64_t positions);

}  // namespace footplate
