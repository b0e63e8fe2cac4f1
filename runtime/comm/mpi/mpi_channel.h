#pragma once

#include <filesystem>
#include <memory>

#include "runtime/comm/message_channel.h"
#include "runtime/comm/mpi/mpi_session.h"

namespace footplate {

/// Control's messages over `session.control()`, as CBOR. Ranks of one host ring each other's doorbell
/// in `doorbell_directory` (private to the run, the same for all ranks of a host, short: a socket's
/// path has at most 107 bytes), those of other hosts over UDP. Where somebody can't ring, messages are
/// looked for every 20 ms. Collective over the ranks of `session`, which has to outlive the channel.
std::unique_ptr<MessageChannel> make_mpi_channel(MpiSession& session,
                                                 const std::filesystem::path& doorbell_directory);

}  // namespace footplate
