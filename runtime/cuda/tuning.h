#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "protocol/nccl/tuning_rules.h"
#include "protocol/result.h"
#include "protocol/settings.h"
#include "runtime/cuda/plugin_abi.h"

namespace footplate {

/// What the settings nccl.rules, nccl.algo and nccl.proto ask of the tuner: the rules, and behind them what
/// is for all sizes. What the environment gives NCCL itself is left to it. `settings` have been checked.
std::vector<TuningRule> tuning_rules(const Settings& settings);

/// The same number for the same rules, in every process; 0: none.
std::uint32_t version_of(const std::vector<TuningRule>& rules);

/// The algorithms and protocols of `rule` in the words that NCCL's configuration of a collective takes
/// (ncclCollConfig_t::algSelection, 2.31): "TREE_LL+^TREE_LL128". Empty: any.
std::string selection_of(const TuningRule& rule);

/// Rules of a run as one of its ranks knows them, and what came of them. The first rule that fits counts.
///
/// All ranks have to decide alike, or they hang: NCCL doesn't compare. So a table is prepared beside training
/// (propose), switched at a step that all have agreed on, while no group is open and none is being launched
/// (switch_to), and what was decided is summed up (TunerDigest) for comparing.
class Tuning {
 public:
  static constexpr std::size_t kMostRules = 32;

  /// Checks `rules` and keeps them beside those in force, as `version`. Errors (usage): too many, a range
  /// upside down, channels without an algorithm that goes with them, more than `most_channels`; (refused)
  /// the rules that were in force before are still being read: try again. Control thread.
  Result<void> propose(std::uint32_t version, const std::vector<TuningRule>& rules);

  /// From here on the proposed rules count. False: `version` isn't what is proposed. The thread that launches
  /// collectives, between two of them.
  bool switch_to(std::uint32_t version);

  /// How many channels (blocks) the communicators of this run have at least: NCCL takes more than a
  /// communicator has without a check. 0, the default: unknown, no rule may name channels.
  void set_most_channels(int channels) { most_channels_ = channels; }

  /// A collective that a rule was meant for, and that NCCL can't do so here: it did it as it would have.
  struct Unmet {
    NcclCollective collective = NcclCollective::all_reduce;
    std::size_t bytes = 0;
    Algorithm algorithm = Algorithm::ring;  ///< what it took
    WireProtocol protocol = WireProtocol::simple;
  };
  /// The first one since the last switch, once. Any thread.
  std::optional<Unmet> take_unmet();

  /// The rule in force for such a collective. Any thread; never waits.
  std::optional<TuningRule> rule_for(NcclCollective collective, std::size_t bytes);

  std::uint32_t version() const;
  std::vector<TuningRule> rules() const;  ///< in force. Control thread.

  /// What NCCL is told.
  struct Decision {
    int algorithm = -1;  ///< the cell that has the least cost then; -1: none can be had
    int protocol = -1;
    int channels = 0;  ///< 0: NCCL's choice
    bool by_rule = false;
    std::uint32_t version = 0;
  };
  /// Changes `costs` (algorithms x protocols, -1 where NCCL can't) so that the cell of the rule that fits is
  /// the cheapest. Where none of the wanted cells can be had nothing is changed. Any thread; never waits.
  Decision decide(int function, std::size_t bytes, float* costs, int algorithms, int protocols);

 private:
  struct Table {
    std::uint32_t version = 0;
    std::size_t count = 0;
    std::array<TuningRule, kMostRules> rules;
    std::atomic<int> readers = 0;
  };
  Table& enter();  ///< the table in force, held against propose()
  static const TuningRule* fitting(const Table& table, int function, std::size_t bytes);

  std::array<Table, 2> tables_;
  std::atomic<int> active_ = 0;
  std::atomic<bool> proposed_ = false;
  /// 0: none since the switch; 1: being written; 2: there; 3: taken.
  std::atomic<int> unmet_state_ = 0;
  Unmet unmet_;
  int most_channels_ = 0;
};

/// What the tuner of one communicator has decided so far. Equal on all ranks that have launched the same
/// collectives with the same rules; compare it while none is being launched.
struct TunerDigest {
  std::uint32_t version = 0;      ///< of the rules, at the last decision
  std::uint64_t collectives = 0;  ///< decided
  std::uint64_t hash = 0;
  bool operator==(const TunerDigest&) const = default;
};

}  // namespace footplate
