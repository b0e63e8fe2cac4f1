#include "runtime/comm/chunks.h"

namespace footplate {
namespace {

constexpr std::int64_t kMillion = 1'000'000;
/// Pieces begin where elements of any type do that are read 16 bytes at a time.
constexpr std::int64_t kAligned = 16;

std::int64_t pieces_by_size(std::int64_t elements) {
  if (elements < 100 * kMillion) return 1;
  if (elements <= 500 * kMillion) return std::clamp<std::int64_t>(elements / (100 * kMillion), 2, 5);
  return std::clamp<std::int64_t>(elements / (50 * kMillion), 10, 20);
}

}  // namespace

std::int64_t chunk_of(std::int64_t elements, std::int64_t chosen) {
  const std::int64_t pieces = pieces_by_size(elements);
  const std::int64_t chunk =
      chosen > 0 ? chosen : ((elements + pieces - 1) / pieces + kAligned - 1) / kAligned * kAligned;
  return std::clamp<std::int64_t>(chunk, 1, kLargestChunk);
}

}  // namespace footplate
