#pragma once

#include <map>
#include <optional>
#include <string>

#include "runtime/comm/mpi/mpi_session.h"

namespace footplate {

/// Seconds by which the clocks of other hosts are ahead of rank 0's (behind: negative), of those that are
/// far from it; by host. Collective over the ranks of the session, at the start, over control(). Exact to
/// what a barrier takes. Nothing where a rank was lost.
std::optional<std::map<std::string, double>> clocks_ahead(MpiSession& session);

}  // namespace footplate
