#pragma once

#include <vector>

namespace footplate {

/// What a rank has of state that the ranks share (optim.shard).
struct HeldShare {
  int share = 0;        ///< its share, by the number of the rank that it was made for
  int copied = 0;       ///< the share that it has a copy of; its own one: it has no copy
  int of = 1;           ///< how many shares there are; 1: it has all of the state
  bool shared = false;  ///< optim.shard is on, also where one rank alone has all of the state
};

/// Into how many shares the state is divided that these ranks have all of, with their copies; 0: some of it
/// is gone. Where a rank is lost as the state is divided among other ranks, some have shares of the old
/// division and some of the new one. They don't fit together: one of the two has to be there as a whole.
int whole_division(const std::vector<HeldShare>& held);

}  // namespace footplate
