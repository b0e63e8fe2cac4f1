#include <string>

#include "console/lua/api/api.h"
#include "console/lua/core/bind.h"
#include "console/lua/core/listing.h"
#include "console/lua/session/session.h"
#include "protocol/messages/reports.h"

// comm.dump(): the last collectives of every rank, in files.

namespace footplate::lua {
namespace {

std::string line_of(const DumpedLedger& dumped) {
  const std::string start = "rank " + std::to_string(dumped.rank) + ": ";
  if (dumped.path.empty()) return start + "no file: " + dumped.error;
  return start + dumped.path + " (" + std::to_string(dumped.operations) + " operations)";
}

int comm_dump(lua_State* state) {
  const auto report = session_of(state).look_at_ranks(request::DumpLedgers{});
  std::string text;
  for (const DumpedLedger& dumped : report.ranks) text += (text.empty() ? "" : "\n") + line_of(dumped);
  push_listing(state, list_of(report.ranks), text);
  return 1;
}

constexpr Registration kLedgerFunctions[] = {
    {.doc = {.name = "comm.dump",
             .role = Role::operate,
             .example = "comm.dump()",
             .help = "each rank writes its last 1,024 collectives into a file of the run directory; returns "
                     "the paths. Also done by itself when one is past its deadline"},
     .handler = bound<comm_dump>},
};

}  // namespace

std::span<const Registration> ledger_functions() {
  return kLedgerFunctions;
}

}  // namespace footplate::lua
