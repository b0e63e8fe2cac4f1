#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "protocol/json.h"
#include "protocol/result.h"
#include "runtime/comm/ledger.h"

namespace footplate {

/// One collective, as a rank tells of it.
struct LedgerLine {
  std::uint64_t sequence = 0;
  std::uint32_t generation = 0;
  Phase phase = Phase::starting;
  Collective kind = Collective::all_reduce;
  DataType type = DataType::float32;
  std::int64_t elements = 0;
  std::int32_t variant = 0;
  std::int64_t step = 0;
  std::string name;
  std::uint64_t digest = 0;
  bool running = false;
  double age_s = 0;
};

/// What a rank answers when it is asked for its collectives.
struct LedgerAnswer {
  std::uint64_t newest = 0;         ///< the last sequence launched
  std::vector<LedgerLine> entries;  ///< the last ones up to that, oldest first
};
Json to_json(const LedgerAnswer& answer);
Result<void> read_json(const Json& json, LedgerAnswer& answer);

/// With ages as of `now`.
LedgerAnswer answer_of(const Ledger& ledger, LedgerEntry::Clock::time_point now = LedgerEntry::Clock::now());

}  // namespace footplate
