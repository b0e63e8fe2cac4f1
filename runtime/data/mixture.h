#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "runtime/data/sampler.h"

namespace footplate {

/// How far one data set is.
struct SetPosition {
  std::int64_t drawn = 0;  ///< samples, since the start of the run
  double credit = 0;       ///< samples that its share has earned and that weren't drawn; below 1 in size
};

/// Some draws of one data set, numbered from the start of the run.
struct Draws {
  int set = 0;
  Slice slice;
  bool operator==(const Draws&) const = default;
};

/// What one step takes from each data set, over all ranks.
struct StepSamples {
  std::vector<Slice> draws;        ///< by set; empty where it gives none
  std::vector<SetPosition> after;  ///< where the sets are once the step is done
};

/// Takes `batch_size` samples from the sets in the proportion of their `shares`. Each count is a whole
/// number, and what rounding leaves is carried over as credit: over n steps a set gives n * batch_size * its
/// share, to less than one sample, also where shares or the batch size change. Sets with the share 0 give
/// none, and their credit ends. At least one share is above 0.
StepSamples samples_of_step(std::span<const SetPosition> before, std::int64_t batch_size,
                            std::span<const double> shares);

/// What rank `rank` of `world_size` takes of `counts` samples of each set. All ranks together take each
/// sample once; of a set, and of all sets together, ranks differ by one sample at most. Of one set it is
/// slice_of().
std::vector<Slice> slices_of(std::span<const std::int64_t> counts, int rank, int world_size);

/// The same of a step's draws, in the order of the sets, cut into pieces of at most `most` samples (0: as
/// they are). In each set the first `offset` draws of the run are passed over.
std::vector<Draws> draws_of_rank(const StepSamples& step, int rank, int world_size, std::int64_t most,
                                 std::int64_t offset);

/// How many draws_of_rank() gives the rank that it gives most.
std::size_t most_draws(const StepSamples& step, int world_size, std::int64_t most);

/// Splits `total` over sets of these sizes as evenly as they allow: small sets give all they have.
std::vector<std::int64_t> spread_evenly(std::int64_t total, std::span<const std::int64_t> sizes);

}  // namespace footplate
