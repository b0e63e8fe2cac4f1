#pragma once

#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

namespace footplate {

/// Rank 0: what each rank answers to one question. An answer costs the same however many ranks there are. One
/// that answers again replaces what it said, and counts once.
template <class T>
class Answers {
 public:
  /// Of nobody so far.
  explicit Answers(int world_size = 0) : by_rank_(static_cast<std::size_t>(world_size)) {}

  void add(int rank, T answer) {
    std::optional<T>& its = by_rank_[static_cast<std::size_t>(rank)];
    if (!its) ++given_;
    its = std::move(answer);
  }
  bool are_complete() const { return given_ == by_rank_.size(); }
  int world_size() const { return static_cast<int>(by_rank_.size()); }
  /// Of a rank that has answered.
  const T& of(int rank) const { return *by_rank_[static_cast<std::size_t>(rank)]; }
  /// Who hasn't answered, in order. Looks at every rank.
  std::vector<int> missing() const {
    std::vector<int> ranks;
    for (std::size_t rank = 0; rank < by_rank_.size(); ++rank)
      if (!by_rank_[rank]) ranks.push_back(static_cast<int>(rank));
    return ranks;
  }

 private:
  std::vector<std::optional<T>> by_rank_;
  std::size_t given_ = 0;
};

}  // namespace footplate
