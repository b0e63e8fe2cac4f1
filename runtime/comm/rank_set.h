#pragma once

#include <vector>

namespace footplate {

/// A set of ranks, kept as ranges: those of a part of a large world are few.
class RankSet {
 public:
  struct Range {
    int first = 0;
    int last = 0;
    bool operator==(const Range&) const = default;
  };

  RankSet() = default;
  explicit RankSet(int rank) : RankSet(rank, rank) {}
  /// All from `first` to `last`; nobody where `last` is less.
  RankSet(int first, int last) { add(first, last); }

  void add(int first, int last);
  void add(const RankSet& others);
  void remove(int rank);

  bool empty() const { return ranges_.empty(); }
  int size() const;
  bool contains(int rank) const;
  bool intersects(const RankSet& other) const;
  /// Of one that isn't empty.
  int first() const { return ranges_.front().first; }
  /// In order, none next to another.
  const std::vector<Range>& ranges() const { return ranges_; }
  bool operator==(const RankSet&) const = default;

  /// Each rank, in order.
  template <class Each>
  void for_each(const Each& each) const {
    for (const auto& [first, last] : ranges_)
      for (int rank = first; rank <= last; ++rank) each(rank);
  }

 private:
  std::vector<Range> ranges_;
};

}  // namespace footplate
