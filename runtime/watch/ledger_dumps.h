#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "protocol/messages/reports.h"
#include "runtime/base/clock.h"
#include "runtime/comm/ledger.h"

namespace footplate {

/// Writes what a rank's ledger holds into files of the run directory, as a flight recorder's tape: ledgers/
/// rank-R-N.jsonl (docs/files.md), of which each rank keeps the newest kMostFiles. On a thread of its own,
/// since a disk that hangs may be why a collective does. Control thread.
class LedgerDumps {
 public:
  using Clock = SteadyClock;
  static constexpr int kMostFiles = 8;

  /// `ledger` outlives this.
  LedgerDumps(const Ledger& ledger, const std::filesystem::path& run_directory, std::string host);
  ~LedgerDumps();  ///< waits a moment for a file that is being written

  /// Writes one, and waits a moment for it. `rank`: this one, as of now.
  DumpedLedger dump(int rank, const std::string& why);
  /// The same after a time-out: without waiting, and not more often than once a minute. What hangs again and
  /// again says the same each time.
  void dump_after_timeout(int rank, Clock::time_point now);

 private:
  struct Writing;
  std::shared_ptr<Writing> begin(int rank, const std::string& why);

  const Ledger& ledger_;
  const std::filesystem::path folder_;
  const std::string host_;
  std::shared_ptr<Writing> writing_;  ///< the last one
  Clock::time_point next_{};          ///< after a time-out
};

}  // namespace footplate
