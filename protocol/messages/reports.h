#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "protocol/json.h"
#include "protocol/result.h"

namespace footplate {

/// The collectives of one kind and size that a rank has counted.
struct CountedCollectives {
  int rank = 0;
  std::string kind;
  std::int64_t at_least = 0;  ///< elements, a power of ten
  std::int64_t count = 0;
  std::int64_t bytes = 0;
  double total_ms = 0;
  double longest_ms = 0;
  std::int64_t overdue = 0;  ///< how many were past their deadline
};
Json to_json(const CountedCollectives& counted);
Result<void> read_json(const Json& json, CountedCollectives& counted);

/// A setting of the collectives that would be better.
struct SettingProposal {
  std::string setting;
  Json value;
  std::string command;  ///< that sets it
  std::string text;     ///< why, for people
};

/// What comm.report() shows.
struct CommReport {
  std::vector<CountedCollectives> patterns;  ///< of the ranks that have answered
  std::vector<SettingProposal> proposals;
};
Json to_json(const CommReport& report);
Result<void> read_json(const Json& json, CommReport& report);

/// A rank's ledger as a file (docs/files.md).
struct DumpedLedger {
  int rank = 0;
  std::string path;  ///< empty: there is none
  std::int64_t operations = 0;
  std::string error;  ///< why
};
Json to_json(const DumpedLedger& dumped);
Result<void> read_json(const Json& json, DumpedLedger& dumped);

/// What comm.dump() shows.
struct DumpReport {
  std::vector<DumpedLedger> ranks;  ///< all that were asked
};
Json to_json(const DumpReport& report);
Result<void> read_json(const Json& json, DumpReport& report);

/// Where a thread is.
struct ThreadPlace {
  std::string name;
  int tid = 0;
  std::string state;                ///< as /proc has it
  std::vector<std::string> frames;  ///< innermost first; … stands for some that are left out
  std::string note;                 ///< why it doesn't answer
};

/// Where the threads of a rank are; the training thread comes first.
struct RankStacks {
  int rank = 0;
  std::vector<ThreadPlace> threads;
  std::optional<double> silent_s;  ///< it hasn't answered; since it was last heard of
  std::string text;                ///< and where it was then
};

/// What ranks.stacks() shows.
struct StackReport {
  std::optional<int> rank;  ///< the one asked for; nothing: all
  std::vector<RankStacks> ranks;
};
Json to_json(const ThreadPlace& thread);
Result<void> read_json(const Json& json, ThreadPlace& thread);
Json to_json(const RankStacks& stacks);
Json to_json(const StackReport& report);
Result<void> read_json(const Json& json, StackReport& report);

}  // namespace footplate
