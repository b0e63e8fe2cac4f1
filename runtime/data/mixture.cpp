#include "runtime/data/mixture.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace footplate {
namespace {

/// A set that takes part in a step.
struct Claim {
  std::size_t set = 0;
  double target = 0;  ///< samples, with its credit
  std::int64_t count = 0;

  double rest() const { return target - static_cast<double>(count); }
};

bool is_owed_less(const Claim& a, const Claim& b) {
  return a.rest() < b.rest();
}

std::vector<Claim> claims_of(std::span<const SetPosition> before, std::int64_t batch_size,
                             std::span<const double> shares) {
  const double sum = std::accumulate(shares.begin(), shares.end(), 0.0);
  std::vector<Claim> claims;
  for (std::size_t set = 0; set < shares.size(); ++set) {
    if (shares[set] <= 0) continue;
    const double target = before[set].credit + static_cast<double>(batch_size) * (shares[set] / sum);
    claims.push_back({set, target, std::max<std::int64_t>(0, static_cast<std::int64_t>(std::floor(target)))});
  }
  return claims;
}

/// Largest remainders first, and lower numbers first among equals: the same on all ranks.
void round_to(std::vector<Claim>& claims, std::int64_t batch_size) {
  std::int64_t left = batch_size;
  for (const Claim& claim : claims) left -= claim.count;
  for (; left > 0; --left) ++std::ranges::max_element(claims, is_owed_less)->count;
  for (; left < 0; ++left) {  // credits of sets that have left the mixture made the others' too large
    auto least = claims.end();
    for (auto claim = claims.begin(); claim != claims.end(); ++claim)
      if (claim->count > 0 && (least == claims.end() || is_owed_less(*claim, *least))) least = claim;
    --least->count;
  }
}

/// Which ranks take one sample more than the others: of `more` such samples, those that have fewest so far.
std::vector<std::int64_t> extras(std::int64_t more, const std::vector<std::int64_t>& so_far) {
  const auto world_size = static_cast<int>(so_far.size());
  std::vector<std::int64_t> extra(so_far.size());
  if (std::ranges::all_of(so_far, [&](std::int64_t count) { return count == so_far.front(); })) {
    for (int rank = 0; rank < world_size; ++rank)
      extra[static_cast<std::size_t>(rank)] = slice_of(more, rank, world_size).size();
    return extra;
  }
  std::vector<std::size_t> ranks(so_far.size());
  std::iota(ranks.begin(), ranks.end(), std::size_t{0});
  std::ranges::stable_sort(ranks, {}, [&](std::size_t rank) { return so_far[rank]; });
  for (std::int64_t i = 0; i < more; ++i) extra[ranks[static_cast<std::size_t>(i)]] = 1;
  return extra;
}

std::vector<std::int64_t> counts_of(const StepSamples& step) {
  std::vector<std::int64_t> counts;
  for (const Slice& draws : step.draws) counts.push_back(draws.size());
  return counts;
}

/// By set, and by rank.
std::vector<std::vector<Slice>> slices_of_all(std::span<const std::int64_t> counts, int world_size) {
  std::vector<std::int64_t> totals(static_cast<std::size_t>(world_size));
  std::vector<std::vector<Slice>> all;
  for (const std::int64_t count : counts) {
    const std::vector<std::int64_t> extra = extras(count % world_size, totals);
    std::vector<Slice>& slices = all.emplace_back();
    std::int64_t first = 0;
    for (std::size_t rank = 0; rank < totals.size(); ++rank) {
      const std::int64_t size = count / world_size + extra[rank];
      slices.push_back({first, first + size});
      first += size;
      totals[rank] += size;
    }
  }
  return all;
}

/// Samples of a slice that are one piece.
std::int64_t piece_of(const Slice& slice, std::int64_t most) {
  return most > 0 ? most : std::max<std::int64_t>(1, slice.size());
}

}  // namespace

StepSamples samples_of_step(std::span<const SetPosition> before, std::int64_t batch_size,
                            std::span<const double> shares) {
  std::vector<Claim> claims = claims_of(before, batch_size, shares);
  round_to(claims, batch_size);
  StepSamples step;
  for (const SetPosition& set : before) {
    step.draws.push_back({set.drawn, set.drawn});
    step.after.push_back({set.drawn, 0});
  }
  for (const Claim& claim : claims) {
    step.draws[claim.set].last += claim.count;
    step.after[claim.set] = {step.draws[claim.set].last, claim.rest()};
  }
  return step;
}

std::vector<Slice> slices_of(std::span<const std::int64_t> counts, int rank, int world_size) {
  std::vector<Slice> slices;
  for (const std::vector<Slice>& all : slices_of_all(counts, world_size))
    slices.push_back(all[static_cast<std::size_t>(rank)]);
  return slices;
}

std::vector<Draws> draws_of_rank(const StepSamples& step, int rank, int world_size, std::int64_t most,
                                 std::int64_t offset) {
  const std::vector<Slice> slices = slices_of(counts_of(step), rank, world_size);
  std::vector<Draws> parts;
  for (std::size_t set = 0; set < slices.size(); ++set) {
    const std::int64_t begin = step.draws[set].first + offset;
    const std::int64_t size = piece_of(slices[set], most);
    for (std::int64_t first = slices[set].first; first < slices[set].last; first += size)
      parts.push_back(
          {static_cast<int>(set), {begin + first, begin + std::min(first + size, slices[set].last)}});
  }
  return parts;
}

std::size_t most_draws(const StepSamples& step, int world_size, std::int64_t most) {
  std::vector<std::int64_t> draws(static_cast<std::size_t>(world_size));
  for (const std::vector<Slice>& slices : slices_of_all(counts_of(step), world_size))
    for (std::size_t rank = 0; rank < draws.size(); ++rank) {
      const std::int64_t piece = piece_of(slices[rank], most);
      draws[rank] += (slices[rank].size() + piece - 1) / piece;
    }
  return static_cast<std::size_t>(std::ranges::max(draws));
}

std::vector<std::int64_t> spread_evenly(std::int64_t total, std::span<const std::int64_t> sizes) {
  std::vector<std::size_t> by_size(sizes.size());
  std::iota(by_size.begin(), by_size.end(), std::size_t{0});
  std::ranges::stable_sort(by_size, {}, [&](std::size_t set) { return sizes[set]; });
  std::vector<std::int64_t> parts(sizes.size());
  auto sets_left = static_cast<std::int64_t>(sizes.size());
  for (const std::size_t set : by_size) {
    parts[set] = std::min(sizes[set], total / sets_left);
    total -= parts[set];
    --sets_left;
  }
  return parts;
}

}  // namespace footplate
