#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "protocol/result.h"
#include "runtime/watch/messages.h"

namespace footplate {

/// A checkpoint that the ranks can take their state from.
struct CheckpointAt {
  std::string path;
  std::int64_t step = 0;
};
/// The newest one of the run, of step `at_most` or before. Error: there is none to go back to, and why.
using NewestCheckpoint = std::function<Result<CheckpointAt>(std::int64_t at_most)>;

/// Rank 0 of a new world, after ranks were lost: hears from everyone who is left where it stands, and decides
/// for all, once, how they go on. A state machine as Coordinator is; control thread.
///
/// State goes on from the rank that has completed the most steps (they are one apart at most: nobody gets
/// through a step's reduction alone); of several from none that is known to differ from most. Of state that
/// is shared among ranks somebody has to have each share, or its copy. Where a share is gone, or no rank's
/// state is that of one step, all go back to the newest checkpoint; without one nobody can go on. Orders: at
/// most the newest commit can be known to some ranks only, since the next order isn't opened before all have
/// it; who knows it tells, and all have it. What nobody saw committed has changed nothing anywhere.
class Recovery {
 public:
  /// `odd`: ranks that have another state than most.
  Recovery(int world_size, std::uint32_t generation, std::vector<int> odd = {})
      : world_size_(world_size), generation_(generation), odd_(std::move(odd)) {}

  /// One of another generation is ignored.
  void add(int source, const message::Standing& standing);

  /// Who hasn't said so yet.
  std::vector<int> awaited() const;

  /// What all are told, once all stand. `newest` is asked where state is gone.
  std::optional<message::Rejoin> verdict(const NewestCheckpoint& newest) const;

 private:
  int world_size_;
  std::uint32_t generation_;
  std::vector<int> odd_;
  std::map<int, message::Standing> standing_;  ///< by rank
};

}  // namespace footplate
