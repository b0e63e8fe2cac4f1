#include "runtime/data/sampler.h"

namespace footplate {

std::int64_t sample_offset(std::uint64_t seed, std::int64_t sample, std::int64_t positions) {
  // The upper half of a 128-bit product maps 64 random bits onto the range without a division.
  __extension__ using Wide = unsigned __int128;
  const Wide product = static_cast<Wide>(counter_hash(seed, static_cast<std::uint64_t>(sample))) *
                       static_cast<Wide>(positions);
  return static_cast<std::int64_t>(product >> 64);
}

}  // namespace footplate
