#pragma once

#include <cstdint>
#include <map>

#include "protocol/json.h"
#include "runtime/comm/mpi/mpi_session.h"

namespace footplate {

/// Who is where, for run.json: [{"rank", "host", "pid"}]. `pids` is by the numbers of the start, as
/// Membership::origins are.
Json rank_table(const MpiSession& session, const std::map<int, std::int64_t>& pids);

}  // namespace footplate
