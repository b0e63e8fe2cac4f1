#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "protocol/value.h"
#include "runtime/comm/ledger.h"
#include "runtime/watch/late_collectives.h"

namespace footplate {

/// What late collectives give reason to change.
struct Conclusion {
  Value value;            ///< for the setting
  std::string why;        ///< the evidence, one clause
  std::vector<int> last;  ///< ranks that came last each time
  double longest_s = 0;   ///< that was seen
};

/// What happens at fewer steps is an exception, of which a deadline is there to tell.
inline constexpr std::size_t kStepsForAConclusion = 3;

/// Pieces aren't made smaller than this: below, what a call costs by itself (some ten microseconds) is no
/// longer small beside what it moves.
inline constexpr std::int64_t kLeastPiece = 100'000;

/// `late` went past the same deadline, now `limit_s`, and ended after all: how long it had better be, at most
/// `most_s`. Nothing: at too few steps.
std::optional<Conclusion> longer_deadline(const std::string& setting, double limit_s, double most_s,
                                          const std::vector<LateCollective>& late);

/// Whether smaller pieces would make `late` (of any deadline) faster; `chunk` is comm.chunk_elements, and
/// `counted` what operations of each size have taken here. That a large operation takes long is no reason by
/// itself: in smaller pieces it moves as much. A reason is that smaller operations move more in the same
/// time.
std::optional<Conclusion> smaller_pieces(std::int64_t chunk, const std::vector<LateCollective>& late,
                                         const std::vector<CollectivePattern>& counted);

/// Elements of the pieces that an operation on so many runs in.
std::int64_t piece_of(std::int64_t elements, std::int64_t chunk);

}  // namespace footplate
