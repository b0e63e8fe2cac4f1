#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "protocol/result.h"

namespace footplate {

/// The ranks of a run, as they are now.
struct Membership {
  std::uint32_t generation = 1;  ///< 1 at the start, one more each time the world was made anew
  int rank = 0;                  ///< this process's
  std::vector<int> origins;  ///< by rank: its number when the run started; who joins later has one of its own
  int local_ranks = 1;       ///< on this host

  int world_size() const { return static_cast<int>(origins.size()); }
};

/// A process on its way into the run, in the place of one that was lost. Rank 0 knows of it; one at a time.
enum class JoiningRank {
  none,
  coming,  ///< is being started, or prepares itself
  ready,   ///< could be let in at once
  failed
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

  // One more, beside training: invite(), and once it is ready grow(). A world that can't has no guests.

  /// Rank 0: starts a process that gets `number` among the origins, and `greeting` as soon as it runs.
  /// Returns at once.
  virtual void invite(int /*number*/, const std::string& /*greeting*/) {}
  /// Rank 0. Where it has failed, why.
  virtual JoiningRank joining_rank() const { return JoiningRank::none; }
  virtual std::string guest_failure() const { return ""; }
  /// Rank 0: forgets about it; it ends by itself.
  virtual void dismiss() {}
  /// Every rank, while nothing is under way on the communicator: as rebuild(), but nothing is interrupted,
  /// and the world is one larger. The joining rank becomes the last rank, having been told `welcome` (rank
  /// 0's counts). Errors: lost, on all ranks: it came to nothing, the world is broken().
  virtual Result<void> grow(const std::string& /*welcome*/) {
    return fail(ErrorKind::failed, "this world can't grow");
  }
};

}  // namespace footplate
