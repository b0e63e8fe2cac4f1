#include "runtime/data/corpus_identity.h"

#include <fmt/format.h>
#include <xxhash.h>

namespace footplate {
namespace {

constexpr std::size_t kHashSamples = 64;
constexpr std::size_t kHashSampleBytes = 64 << 10;

}  // namespace

std::string CorpusIdentity::hash_text() const {
  return fmt::format("{:016x}", hash);
}

std::string CorpusIdentity::text() const {
  return fmt::format("{} ({} bytes, hash {})", path.empty() ? "data" : path, bytes, hash_text());
}

std::uint64_t CorpusIdentity::ranks_hash() const {
  return XXH3_64bits_withSeed(sets.data(), sets.size(), hash ^ bytes);
}

std::string CorpusIdentity::ranks_hash_text() const {
  return fmt::format("{:016x}", ranks_hash());
}

std::string CorpusIdentity::of_ranks() const {
  return sets.empty() ? text() : fmt::format("{}, {}", text(), sets);
}

std::uint64_t corpus_hash(std::span<const std::uint8_t> text) {
  if (text.size() <= kHashedWhole) return XXH3_64bits_withSeed(text.data(), text.size(), text.size());
  std::uint64_t hash = text.size();
  for (std::size_t i = 0; i < kHashSamples; ++i) {
    const std::size_t from = (text.size() - kHashSampleBytes) * i / (kHashSamples - 1);
    hash = XXH3_64bits_withSeed(text.data() + from, kHashSampleBytes, hash);
  }
  return hash;
}

}  // namespace footplate
