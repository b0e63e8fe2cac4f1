#include "runtime/comm/rank_set.h"

#include <algorithm>
#include <iterator>

namespace footplate {
namespace {

/// The first of the ranges that ends at `rank` or after it.
auto first_ending_at(const std::vector<RankSet::Range>& ranges, int rank) {
  return std::lower_bound(ranges.begin(), ranges.end(), rank,
                          [](const RankSet::Range& range, int one) { return range.last < one; });
}

}  // namespace

void RankSet::add(int first, int last) {
  if (last < first) return;
  Range range{first, last};
  const auto begin = first_ending_at(ranges_, first - 1);
  auto end = begin;
  for (; end != ranges_.end() && end->first <= range.last + 1; ++end) {
    range.first = std::min(range.first, end->first);
    range.last = std::max(range.last, end->last);
  }
  ranges_.insert(ranges_.erase(begin, end), range);
}

void RankSet::add(const RankSet& others) {
  for (const auto& [first, last] : others.ranges_) add(first, last);
}

void RankSet::remove(int rank) {
  const auto at = first_ending_at(ranges_, rank);
  if (at == ranges_.end() || at->first > rank) return;
  const Range range = *at;
  const auto next = ranges_.erase(at);
  std::vector<Range> left;
  if (range.first < rank) left.push_back({range.first, rank - 1});
  if (rank < range.last) left.push_back({rank + 1, range.last});
  ranges_.insert(next, left.begin(), left.end());
}

int RankSet::size() const {
  int size = 0;
  for (const auto& [first, last] : ranges_) size += last - first + 1;
  return size;
}

bool RankSet::contains(int rank) const {
  const auto at = first_ending_at(ranges_, rank);
  return at != ranges_.end() && at->first <= rank;
}

bool RankSet::intersects(const RankSet& other) const {
  return std::any_of(other.ranges_.begin(), other.ranges_.end(), [this](const Range& range) {
    const auto at = first_ending_at(ranges_, range.first);
    return at != ranges_.end() && at->first <= range.last;
  });
}

}  // namespace footplate
