// Sums of memory by place, on the processors: a device does the same operations.
#include "runtime/device/stretch_sums.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <random>
#include <span>
#include <vector>

namespace footplate {
namespace {

using Words = std::vector<std::uint32_t>;

Words random_words(std::size_t count, unsigned seed) {
  Words words(count);
  std::mt19937 random(seed);
  for (std::uint32_t& word : words) word = static_cast<std::uint32_t>(random());
  return words;
}

std::vector<std::int64_t> sums_of(const std::vector<Words>& stretches) {
  static StretchSums sums(at::kCPU);
  std::vector<std::span<const std::byte>> bytes;
  for (const Words& words : stretches) bytes.push_back(std::as_bytes(std::span(words)));
  const at::Tensor found = sums.of(bytes);
  const auto* first = found.const_data_ptr<std::int64_t>();
  return {first, first + found.numel()};
}

TEST(StretchSums, AreThoseOfEachStretchByItself) {
  const std::vector<Words> all{random_words(1 << 20, 1), random_words(1, 2), random_words(777, 3)};
  const auto together = sums_of(all);
  ASSERT_EQ(together.size(), all.size());
  for (std::size_t i = 0; i < all.size(); ++i) EXPECT_EQ(sums_of({all[i]}).front(), together[i]) << i;
}

TEST(StretchSums, EachBitOfEachWordCounts) {
  const Words sound = random_words(100, 4);
  const auto sum = sums_of({sound}).front();
  for (std::size_t word = 0; word < sound.size(); ++word)
    for (unsigned bit = 0; bit < 32; ++bit) {
      Words odd = sound;
      odd[word] ^= 1U << bit;
      EXPECT_NE(sums_of({odd}).front(), sum) << word << " " << bit;
    }
}

TEST(StretchSums, PlacesCount) {
  Words words = random_words(100, 5);
  const auto sum = sums_of({words}).front();
  std::swap(words[3], words[97]);
  EXPECT_NE(sums_of({words}).front(), sum);
}

}  // namespace
}  // namespace footplate
