#include "runtime/comm/mpi/world.h"

#include <chrono>

namespace footplate {
namespace {

/// For the communication thread to come out of a revoked collective; it takes milliseconds.
constexpr std::chrono::seconds kLeaveMpi{30};

}  // namespace

MpiWorld::MpiWorld(MpiSession& session, MpiCommunicator& communicator, MessageChannel& channel)
    : session_(session), communicator_(communicator), channel_(channel) {
  session_.on_loss([this] { channel_.wake(); });
}

Result<void> MpiWorld::rebuild() {
  communicator_.close();
  session_.revoke();
  channel_.wake_peers();  // they see it now, not with their next heartbeat
  if (!communicator_.wait_idle(kLeaveMpi))
    return fail(ErrorKind::failed, "a collective didn't end within 30 s although it was revoked");
  if (auto shrunk = session_.shrink(); !shrunk) return shrunk;
  communicator_.offer();
  channel_.rebuilt();
  return {};
}

}  // namespace footplate
