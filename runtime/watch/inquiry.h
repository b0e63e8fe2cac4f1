#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "protocol/json.h"
#include "runtime/base/clock.h"
#include "runtime/comm/ledger.h"
#include "runtime/watch/status_tracker.h"

namespace footplate {

/// What a rank answers when it is asked for its collectives: `newest`, the last sequence launched, and
/// `entries`, the last ones up to that, oldest first, each with its age at `now`.
Json ledger_to_json(const Ledger& ledger, LedgerEntry::Clock::time_point now = LedgerEntry::Clock::now());

/// Rank 0: the ledgers of all ranks, as they come in, and what they say about one collective that takes too
/// long, or about ranks that called different ones.
class Inquiry {
 public:
  using Clock = SteadyClock;

  /// Asks why `sequence` is past `limit_s` (0: it isn't, but digests differ).
  Inquiry(std::uint64_t sequence, double limit_s, int world_size);

  void add(int source, const Json& answer);
  bool complete() const;

  /// What is wrong, in one line.
  struct Verdict {
    std::string kind;        ///< "different", "missing" or "slow"
    std::vector<int> ranks;  ///< the odd, missing or last ones
    std::uint64_t sequence = 0;
    std::string text;     ///< the finding, and what to do
    std::string finding;  ///< alone
    std::string phase;    ///< of the collective
    std::int64_t step = 0;
    double limit_s = 0;  ///< its deadline; 0: it doesn't hang
  };
  /// From the answers so far; who hasn't answered is missing. Nothing: the ranks called the same, and it has
  /// ended everywhere. `different_known`: that they differ has been said; what hangs is what is asked.
  std::optional<Verdict> conclude(const StatusTracker& status, Clock::time_point now, bool different_known) const;

 private:
  std::optional<Verdict> judge(const StatusTracker& status, Clock::time_point now, bool different_known) const;
  std::optional<Verdict> different() const;
  std::optional<Verdict> missing(const StatusTracker& status, Clock::time_point now) const;
  std::optional<Verdict> slow() const;
  const Json* entry(int rank, std::uint64_t sequence) const;
  const Json* entry(std::uint64_t sequence) const;
  std::uint64_t newest(int rank) const;
  std::uint32_t generation() const;
  std::string name_of(std::uint64_t sequence) const;
  int world_size() const { return static_cast<int>(answers_.size()); }

  std::uint64_t sequence_;
  double limit_s_;
  std::vector<Json> answers_;  ///< by rank; null: none yet
};

}  // namespace footplate
