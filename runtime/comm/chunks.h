#pragma once

#include <algorithm>
#include <cstdint>

namespace footplate {

/// comm.chunk_elements where nobody has set it: over MPI ten pieces of a million floats take 7.5 ms where
/// one call of ten million takes 20 (two ranks over shared memory).
inline constexpr std::int64_t kDefaultChunk = 1'000'000;

/// The most that one call of MPI can be asked for: its counts are ints.
inline constexpr std::int64_t kLargestChunk = 2'147'483'647;

/// Elements of a piece in which an operation on `elements` runs. `chosen` is comm.chunk_elements; 0 goes by
/// size: below 100 million elements in one piece, up to 500 million in 2 to 5, beyond that in 10 to 20, or
/// more where a piece would be larger than kLargestChunk. At least 1.
std::int64_t chunk_of(std::int64_t elements, std::int64_t chosen);

/// Calls `run(first, count)` for one piece after the other, until one returns false. Only the last piece is
/// shorter than `chunk`. Returns whether all were run.
template <class Run>
bool in_chunks(std::int64_t elements, std::int64_t chunk, Run run) {
  for (std::int64_t first = 0; first < elements; first += chunk)
    if (!run(first, std::min(chunk, elements - first))) return false;
  return true;
}

}  // namespace footplate
