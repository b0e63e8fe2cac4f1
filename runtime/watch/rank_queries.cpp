#include "runtime/watch/rank_queries.h"

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "protocol/messages/reports.h"
#include "runtime/stacks/thread_stacks.h"
#include "runtime/watch/ledger_answer.h"

namespace footplate {
namespace {

/// Of a report as text, divided among its ranks: it is one line to the console.
constexpr std::size_t kMostReportBytes = kMaxFrameBytes / 4 * 3;

double in_ms(std::chrono::nanoseconds time) {
  return std::chrono::duration<double, std::milli>(time).count();
}

// --- ledger: the last collectives of each rank (inquiry.h) ---

std::optional<Json> answer_ledger(const RankView& rank) {
  if (rank.ledger == nullptr) return std::nullopt;
  return to_json(answer_of(*rank.ledger));
}

// --- comm: what each rank has counted, for comm.report() ---

std::optional<Json> answer_comm(const RankView& rank) {
  if (rank.ledger == nullptr) return std::nullopt;
  Json counted = Json::array();
  for (const CollectivePattern& pattern : rank.ledger->patterns()) {
    const auto overdue = rank.overdue.find({pattern.kind, pattern.at_least});
    counted.push_back(
        to_json(CountedCollectives{.kind = std::string(to_string(pattern.kind)),
                                   .at_least = pattern.at_least,
                                   .count = pattern.count,
                                   .bytes = pattern.bytes,
                                   .total_ms = in_ms(pattern.total),
                                   .longest_ms = in_ms(pattern.longest),
                                   .overdue = overdue == rank.overdue.end() ? 0 : overdue->second}));
  }
  return counted;
}

Json merge_comm(const RankAnswers& heard, const StatusTracker& /*status*/, const Advice& advice,
                SteadyClock::time_point /*now*/) {
  CommReport report;
  for (const auto& [rank, answer] : heard.answers)
    for (const Json& one : answer) {
      CountedCollectives counted;
      if (!read_json(one, counted)) continue;
      counted.rank = rank;
      report.patterns.push_back(std::move(counted));
    }
  report.proposals = advice.proposals();
  return to_json(report);
}

// --- dump: ledgers as files, for comm.dump() ---

std::optional<Json> answer_dump(const RankView& rank) {
  if (rank.dumps == nullptr) return std::nullopt;
  return to_json(rank.dumps->dump(rank.rank, "comm.dump()"));
}

Json merge_dump(const RankAnswers& heard, const StatusTracker& status, const Advice& /*advice*/,
                SteadyClock::time_point now) {
  DumpReport report;
  for (const auto& [rank, answer] : heard.answers)
    if (DumpedLedger dumped; read_json(answer, dumped)) report.ranks.push_back(std::move(dumped));
  for (const int rank : heard.silent) {
    DumpedLedger none;
    none.rank = rank;
    none.error = "it doesn't answer: " + status.whom({rank}, now);
    report.ranks.push_back(std::move(none));
  }
  std::sort(report.ranks.begin(), report.ranks.end(),
            [](const DumpedLedger& a, const DumpedLedger& b) { return a.rank < b.rank; });
  return to_json(report);
}

// --- timeout: a collective hangs, and these ranks' watchdogs may not know ---

std::optional<Json> answer_timeout(const RankView& rank) {
  if (rank.dumps != nullptr) rank.dumps->dump_after_timeout(rank.rank, SteadyClock::now());
  return Json::object();
}

// --- stacks: where each rank's threads are, for ranks.stacks() ---

std::optional<Json> answer_stacks(const RankView& /*rank*/) {
  std::vector<ThreadPlace> threads = take_stacks();
  trim_stacks(threads);
  Json list = Json::array();
  for (const ThreadPlace& thread : threads) list.push_back(to_json(thread));
  return list;
}

RankStacks silent_stacks(int rank, const StatusTracker& status, SteadyClock::time_point now) {
  const std::string where = status.whom({rank}, now);  // "rank 1: step 812, …"
  return {.rank = rank,
          .threads = {},
          .silent_s = status.silent_s(rank, now),
          .text = where.substr(where.find(": ") + 2)};
}

Json merge_stacks(const RankAnswers& heard, const StatusTracker& status, const Advice& /*advice*/,
                  SteadyClock::time_point now) {
  StackReport report{.rank = heard.asked, .ranks = {}};
  const std::size_t most =
      kMostReportBytes / std::max<std::size_t>(1, heard.answers.size() + heard.silent.size());
  for (const auto& [rank, answer] : heard.answers) {
    RankStacks stacks{.rank = rank, .threads = {}, .silent_s = {}, .text = {}};
    for (const Json& one : answer)
      if (ThreadPlace thread; read_json(one, thread)) stacks.threads.push_back(std::move(thread));
    trim_stacks(stacks.threads, most);
    report.ranks.push_back(std::move(stacks));
  }
  for (const int rank : heard.silent) report.ranks.push_back(silent_stacks(rank, status, now));
  std::sort(report.ranks.begin(), report.ranks.end(),
            [](const RankStacks& a, const RankStacks& b) { return a.rank < b.rank; });
  return to_json(report);
}

constexpr std::array kQueries{
    RankQuery{kLedgerQuery, answer_ledger, nullptr}, RankQuery{kTimeoutQuery, answer_timeout, nullptr},
    RankQuery{"comm", answer_comm, merge_comm}, RankQuery{"dump", answer_dump, merge_dump},
    RankQuery{"stacks", answer_stacks, merge_stacks}};

}  // namespace

std::span<const RankQuery> rank_queries() {
  return kQueries;
}

const RankQuery* find_rank_query(std::string_view name) {
  const auto found = std::find_if(kQueries.begin(), kQueries.end(),
                                  [&](const RankQuery& query) { return query.name == name; });
  return found == kQueries.end() ? nullptr : &*found;
}

}  // namespace footplate
