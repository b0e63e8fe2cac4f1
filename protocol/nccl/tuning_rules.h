#pragma once

#include <cstddef>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "protocol/result.h"

namespace footplate {

/// A collective that NCCL asks its tuner about; its numbers are NCCL's, as those of the others here.
enum class NcclCollective { broadcast, reduce, all_gather, reduce_scatter, all_reduce };
enum class Algorithm { tree, ring, collnet_direct, collnet_chain, nvls, nvls_tree, pat };
enum class WireProtocol { ll, ll128, simple };

std::string_view to_string(NcclCollective collective);
std::string_view to_string(Algorithm algorithm);
std::string_view to_string(WireProtocol protocol);

/// How collectives of one kind and of `min_bytes` to `max_bytes` are done. NCCL counts what it does together:
/// of operations in one group that are alike, the sum.
struct TuningRule {
  static constexpr std::size_t kUnbounded = std::numeric_limits<std::size_t>::max();
  static constexpr int kMostChannels = 64;  ///< of NCCL

  NcclCollective collective = NcclCollective::all_reduce;
  std::size_t min_bytes = 0;
  std::size_t max_bytes = kUnbounded;         ///< inclusive
  std::optional<Algorithm> algorithm = {};    ///< none: the best one
  std::optional<WireProtocol> protocol = {};  ///< none: the best one
  int channels = 0;       ///< so many, at most those that the communicator has; 0: NCCL's choice
  bool no_ll128 = false;  ///< the best protocol but LL128

  /// What channels are for: their number is taken as it is said, and only rings and trees have as many as the
  /// communicator.
  bool is_of_rings_or_trees() const { return algorithm == Algorithm::ring || algorithm == Algorithm::tree; }
  static constexpr auto kChannelsNeedThese =
      "channels need an algorithm, ring or tree: others have channels of their own";

  bool operator==(const TuningRule&) const = default;
};

/// As nccl.rules has it: "all_reduce 1MiB..64MiB tree ll128 4 channels".
std::string to_string(const TuningRule& rule);

/// What nccl.rules holds: rules with ';' between them, of which the first that fits counts. A rule is words
/// in any order: a collective (left out: all_reduce), sizes ("..1MiB", "1MiB..64MiB", "64MiB..", both ends
/// inclusive; left out: all), an algorithm, a protocol, "4 channels". Errors (usage): the rule, the word,
/// what is allowed, the nearest.
Result<std::vector<TuningRule>> tuning_rules_from_string(std::string_view text);

/// SettingSpec::syntax of a text that is read so.
inline constexpr auto kTuningRules = "tuning rules";

}  // namespace footplate
