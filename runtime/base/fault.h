#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "protocol/result.h"

namespace footplate {

/// A fault to inject, for tests, by what stands around a part of a rank: FaultyTraining, open_disk(),
/// inject_start_fault(). FOOTPLATE_FAULT holds any number, separated by commas:
///
///   refuse:rank=1            rank 1 refuses every order but the run's own (a signal's)
///   refuse:rank=1:order=3    … only order 3
///   eval_throw:rank=0        every try of an evaluation throws on rank 0 (before its reduction)
///   eval_throw:above=8       … on all ranks, as out of memory, where batches may have more than 8 sequences
///   eval_throw:tries=2       … the first two times it is tried
///   eval_stall:rank=1:ms=900 rank 1 comes so late to the reduction of each evaluation's first try
///   eval_stall:rank=1:ms=900:try=1  … of each second one
///   eval_absent:rank=1:ms=900 … to that reduction, after all have met for it
///   eval_nan:rank=1          the loss that rank 1 adds up in an evaluation is a NaN
///   step_oom:rank=1:step=5:above=8  from step 5 on rank 1 has no memory for more than 8 samples at once
///   step_throw:rank=1:step=5 the step throws on rank 1 at step 5
///   device_error:rank=1:step=5 the device of rank 1 fails at step 5, and stays so
///   save_fail                every save fails as if the disk were full
///   save_fail:times=3        … the first three times that a file is written
///   save_hold                what a save writes waits while the run's folder has a file hold_saves
///   save_no_copy             there is no memory for a copy of the state
///   save_die:rank=2          rank 2 is killed (SIGKILL) in its first save, before anything is written
///   nan_grad:rank=1:step=7   a NaN is among the gradients of rank 1 at step 7, before they are reduced
///   nan_grad:step=7:times=3  … of every rank, at steps 7, 8 and 9
///   nan_loss:rank=1:step=7   the same in place of the loss alone; the gradients are finite
///   reduce_late:rank=1:step=5:ms=900 rank 1 comes so late to the reductions of step 5
///   odd_reduce:rank=1:step=5 rank 1 calls one reduction too many at step 5, of the size of the first one
///   flip_bit:rank=1:step=50  one bit of a parameter of rank 1 is flipped as the step after 50 begins
///   late_start:rank=1:ms=500 rank 1 starts half a second late
///   late_choice:rank=0:ms=9000 rank 0 takes long to verify the checkpoint to go on from
///   start_hang:rank=1        rank 1 hangs before MPI starts
///   start_hang:rank=1:mpi=1  … right after MPI has started
///   start_die:rank=1         rank 1 is killed (SIGKILL) there; takes mpi=1, too
///   clock:rank=1:s=3600      the clock of rank 1's host is an hour ahead, as far as a start compares clocks
///   mpi_untold               MPI can't be told of a lost host, as of an Open MPI that isn't 5.0
///
/// Without `rank` every rank is meant.
struct Fault {
  std::map<std::string, std::int64_t, std::less<>> parameters;

  /// The parameter's value, or nothing where it wasn't given.
  std::optional<std::int64_t> get(std::string_view name) const;
  /// Whether `value` is what the fault asks for: given and equal, or not given.
  bool matches(std::string_view name, std::int64_t value) const;
};

/// Error (usage): FOOTPLATE_FAULT has a fault or a parameter that there isn't, or a value that is no integer:
/// a test that injects nothing would pass. For the start of a rank; what it accepts, the others find.
Result<void> check_faults();
Result<void> check_faults(std::string_view faults);

/// The fault `kind` for this rank, if FOOTPLATE_FAULT asks for it; none where check_faults() refuses that: a
/// rank that hung or died before it was checked couldn't say so.
std::optional<Fault> fault(std::string_view kind, int rank);

/// The same from a text instead of the environment.
std::optional<Fault> find_fault(std::string_view faults, std::string_view kind, int rank);

}  // namespace footplate
