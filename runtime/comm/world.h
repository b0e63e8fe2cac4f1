#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "protocol/result.h"

namespace footplate {

/// The ranks of a run, as they are now.
struct Membership {
  std::uint32_t generation = 1;  ///< 1 at the start, one more each time the world was made anew
  int rank = 0;                  ///< this process's
  std::vector<int> origins;      ///< by rank: its number when the run started
  int local_ranks = 1;           ///< on this host

  int world_size() const { return static_cast<int>(origins.size()); }
};

/// Who is in the run, and how those who are left go on together once a rank is lost: channel and
/// communicator of the old world fail, rebuild() makes new ones. Control thread, except where marked.
class World {
 public:
  virtual ~World() = default;

  virtual const Membership& members() const = 0;

  /// Whether an operation or a message has failed because a rank is lost, or because another rank has
  /// called rebuild(); until the next rebuild(). Any thread.
  virtual bool broken() const = 0;

  /// Ends what is under way on every rank, waits for whoever else is left to call it, and makes the channel
  /// (at once) and the communicator (at Communicator::rejoin()) theirs. Ranks keep their order, so that
  /// rank 0 is the lowest one left. It waits for every rank that lives: a rank that is stopped holds it up
  /// until it goes on or is killed. Error: this world can't be made anew; nothing is left but to end.
  virtual Result<void> rebuild() = 0;
};

}  // namespace footplate
