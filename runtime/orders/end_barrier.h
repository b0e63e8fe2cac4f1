#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

namespace footplate {

/// Rank 0: where the ranks meet before the run ends. A rank that stood at the end before it heard of the last
/// commit may have been prolonged by it: its word counts once it has heard of all of them.
class EndBarrier {
 public:
  explicit EndBarrier(int world_size) : ranks_(static_cast<std::size_t>(world_size)) {}

  /// One more commit was sent.
  void count_commit() { ++commits_; }
  /// The ranks are others now, have heard of so many commits, and come again.
  void go_on(int world_size, std::uint64_t commits);
  /// `rank` stands at the end, at `step`, and has heard of so many commits.
  void add(int rank, std::int64_t step, std::uint64_t commits);
  bool all_are_there() const;
  /// Once they are: where.
  std::int64_t step() const { return ranks_[0]->step; }

 private:
  struct Standing {
    std::int64_t step = 0;
    std::uint64_t commits = 0;
  };
  std::vector<std::optional<Standing>> ranks_;
  std::map<std::uint64_t, std::size_t> standing_;  ///< how many ranks, by the commits they have heard of
  std::uint64_t commits_ = 0;
};

}  // namespace footplate
