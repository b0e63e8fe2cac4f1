#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string_view>
#include <utility>

#include "protocol/json.h"
#include "runtime/comm/ledger.h"
#include "runtime/watch/advice.h"
#include "runtime/watch/ledger_dumps.h"
#include "runtime/watch/status_tracker.h"

namespace footplate {

/// By kind and CollectivePattern::at_least: how many of this rank's collectives were past their deadline.
using OverdueCounts = std::map<std::pair<Collective, std::int64_t>, int>;

/// A rank, as it sees itself.
struct RankView {
  int rank = 0;
  const Ledger* ledger = nullptr;  ///< may be null
  const OverdueCounts& overdue;
  LedgerDumps* dumps = nullptr;  ///< null: it has no place for files
};

/// What has come of a question.
struct RankAnswers {
  std::optional<int> asked;  ///< the rank; nothing: all
  std::map<int, Json> answers;
  std::set<int> silent;  ///< haven't answered in time
};

/// A question that ranks answer without their training thread. What they say is JSON on its way: each query
/// makes and reads its own.
struct RankQuery {
  std::string_view name;
  /// On each rank. Nothing: this one has no answer.
  std::optional<Json> (*answer)(const RankView& rank);
  /// On rank 0: the report (protocol/messages/reports.h). What can't be read is left out. Null: the console
  /// can't ask it, rank 0 itself does.
  Json (*merge)(const RankAnswers& heard, const StatusTracker& status, const Advice& advice,
                SteadyClock::time_point now);
};

/// What the watchdog of collectives asks; answered by a LedgerAnswer.
inline constexpr std::string_view kLedgerQuery = "ledger";
/// The same, once it knows that one hangs: whoever can writes its ledger down.
inline constexpr std::string_view kTimeoutQuery = "timeout";

/// All of them. Null: there is none of this name.
std::span<const RankQuery> rank_queries();
const RankQuery* find_rank_query(std::string_view name);

}  // namespace footplate
