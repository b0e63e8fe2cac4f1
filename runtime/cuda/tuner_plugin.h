#pragma once

#include <cstdint>
#include <vector>

#include "runtime/cuda/tuning.h"

namespace footplate {

// The tuner that NCCL finds in the library which this is linked into: it exports ncclTunerPlugin_v5 and
// ncclTunerPlugin_v6 (NCCL_TUNER_PLUGIN names the library). NCCL calls it from whichever thread launches a
// group; its calls never wait, never fail and never throw, because a tuner's error fails the collective (NCCL
// 2.28.9, src/enqueue.cc, getAlgoInfo).

/// Communicators that NCCL makes from here on ask `tuning`, which outlives them; null: none, NCCL chooses by
/// itself. NCCL has one tuner in a process, hence no object.
void bind_tuner(Tuning* tuning);

/// What each live communicator that asks `tuning` has decided. Any thread; compare while none is launching.
struct CommunicatorDigest {
  std::uint64_t communicator = 0;  ///< NCCL's number of it, the same on all its ranks
  TunerDigest digest;
};
std::vector<CommunicatorDigest> tuner_digests(const Tuning& tuning);

/// Begins the digests of `tuning`'s communicators anew: after a difference, on all ranks at once. While none
/// is launching.
void restart_digests(const Tuning& tuning);

/// Whether the ranks of one communicator have decided alike so far; if not, a line that names the first rank
/// that differs from rank 0 and in what. `digests` by rank.
Result<void> compare_digests(const std::vector<TunerDigest>& digests);

}  // namespace footplate
