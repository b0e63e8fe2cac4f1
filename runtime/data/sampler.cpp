#include "runtime/data/sampler.h"

#include <algorithm>
#include <bit>
#include <utility>

namespace footplate {
namespace {

/// Four rounds make a Feistel network a pseudo-random permutation (Luby and Rackoff 1988).
constexpr int kRounds = 4;

/// A permutation of [0, 4^half_bits) that depends on `key`.
std::uint64_t permuted(std::uint64_t key, std::uint64_t number, int half_bits) {
  const std::uint64_t mask = (std::uint64_t{1} << half_bits) - 1;
  std::uint64_t left = number >> half_bits;
  std::uint64_t right = number & mask;
  for (int round = 0; round < kRounds; ++round) {
    const std::uint64_t mixed = counter_hash(key + static_cast<std::uint64_t>(round), right) & mask;
    left = std::exchange(right, left ^ mixed);
  }
  return left << half_bits | right;
}

}  // namespace

std::int64_t shuffled_index(std::uint64_t seed, std::int64_t draw, std::int64_t size) {
  const auto samples = static_cast<std::uint64_t>(size);
  const std::uint64_t key = counter_hash(seed, static_cast<std::uint64_t>(draw / size)) << 2;
  const int half_bits = std::max(1, (static_cast<int>(std::bit_width(samples - 1)) + 1) / 2);
  // The network permutes up to four times as many numbers: those that are too large are permuted on until one
  // isn't, which is a permutation of the others (Black and Rogaway 2002).
  auto index = static_cast<std::uint64_t>(draw % size);
  do index = permuted(key, index, half_bits);
  while (index >= samples);
  return static_cast<std::int64_t>(index);
}

std::int64_t sample_offset(std::uint64_t seed, std::int64_t sample, std::int64_t positions) {
  // The upper half of a 128-bit product maps 64 random bits onto the range without a division.
  __extension__ using Wide = unsigned __int128;
  const Wide product = static_cast<Wide>(counter_hash(seed, static_cast<std::uint64_t>(sample))) *
                       static_cast<Wide>(positions);
  return static_cast<std::int64_t>(product >> 64);
}

}  // namespace footplate
