#pragma once

#include <chrono>
#include <string>

#include "protocol/result.h"

namespace footplate {

/// What NCCL's reliability service (RAS) of a run says of its communicators: ranks that are missing or dead,
/// how many operations each has done. `address`: "localhost:28028", as in NCCL_RAS_ADDR. Sends the line
/// protocol of NCCL's own client (2.28.9, src/ras/client.cc) and reads to the end, at most a MiB, in at most
/// `at_most`. Errors (failed): nobody answers there, or not as NCCL does; (timed_out).
///
/// NCCL's service has crashed jobs that were asked often (nccl#1669, nccl#1996): ask by hand, never poll.
Result<std::string> ask_nccl_ras(const std::string& address, bool verbose, std::chrono::seconds at_most);

}  // namespace footplate
