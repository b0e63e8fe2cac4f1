#include "runtime/comm/chunks.h"

#include "runtime/comm/shares.h"

namespace footplate {
namespace {

constexpr std::int64_t kMillion = 1'000'000;

std::int64_t pieces_by_size(std::int64_t elements) {
  if (elements < 100 * kMillion) return 1;
  if (elements <= 500 * kMillion) return std::clamp<std::int64_t>(elements / (100 * kMillion), 2, 5);
  return std::clamp<std::int64_t>(elements / (50 * kMillion), 10, 20);
}

}  // namespace

std::int64_t chunk_of(std::int64_t elements, std::int64_t chosen) {
  const std::int64_t pieces = pieces_by_size(elements);
  // Pieces begin where blocks may: NCCL reads one that begins elsewhere 4 bytes at a time.
  const std::int64_t chunk = chosen > 0 ? chosen : padded((elements + pieces - 1) / pieces, 1);
  return std::clamp<std::int64_t>(chunk, 1, kLargestChunk);
}

}  // namespace footplate
