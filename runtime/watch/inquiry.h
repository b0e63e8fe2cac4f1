#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "protocol/messages/collective_verdict.h"
#include "runtime/base/clock.h"
#include "runtime/watch/ledger_answer.h"
#include "runtime/watch/status_tracker.h"

namespace footplate {

/// Rank 0: the ledgers of all ranks, as they come in, and what they say about one collective that takes too
/// long, or about ranks that called different ones.
class Inquiry {
 public:
  using Clock = SteadyClock;

  /// What is asked: why `sequence` is past `limit_s` (0: it isn't, but digests differ).
  struct Question {
    std::uint64_t sequence = 0;
    double limit_s = 0;
    std::string setting;  ///< that the limit comes from
  };
  Inquiry(Question question, int world_size);

  void add(int source, LedgerAnswer answer);

  /// What is wrong, in one line.
  struct Verdict {
    CollectiveVerdict kind = CollectiveVerdict::missing;
    std::vector<int> ranks;  ///< the odd, missing or last ones
    std::uint64_t sequence = 0;
    std::string text;            ///< the finding, and what to do
    std::string finding;         ///< alone
    std::optional<Phase> phase;  ///< of the collective; nothing: nobody has told
    std::int64_t step = 0;
    double limit_s = 0;  ///< its deadline; 0: it doesn't hang
  };
  /// From the answers so far; who hasn't answered is missing. Nothing: the ranks called the same, and it has
  /// ended everywhere. `different_known`: that they differ has been said; what hangs is what is asked.
  std::optional<Verdict> conclude(const StatusTracker& status, Clock::time_point now,
                                  bool different_known) const;

 private:
  std::optional<Verdict> judge(const StatusTracker& status, Clock::time_point now,
                               bool different_known) const;
  std::optional<Verdict> different() const;
  std::optional<Verdict> missing(const StatusTracker& status, Clock::time_point now) const;
  std::optional<Verdict> slow() const;
  const LedgerLine* entry(int rank, std::uint64_t sequence) const;
  const LedgerLine* entry(std::uint64_t sequence) const;
  std::uint64_t newest(int rank) const;
  std::string name_of(std::uint64_t sequence) const;
  int world_size() const { return static_cast<int>(answers_.size()); }

  Question question_;
  std::vector<std::optional<LedgerAnswer>> answers_;  ///< by rank; nothing: none yet
  /// Of the newest communicator that anybody has used. What a rank did on the one before is over.
  std::uint32_t generation_ = 0;
};

}  // namespace footplate
