#pragma once

#include "runtime/comm/message_channel.h"
#include "runtime/comm/mpi/communicator.h"
#include "runtime/comm/mpi/session.h"
#include "runtime/comm/world.h"

namespace footplate {

/// The world over MPI's extension for fault tolerance (ULFM). Everything it is made from outlives it.
class MpiWorld final : public World {
 public:
  /// Both are of `session`.
  MpiWorld(MpiSession& session, MpiCommunicator& communicator, MessageChannel& channel);

  const Membership& members() const override { return session_.members(); }
  bool broken() const override { return session_.lost(); }
  /// Error: also where the communication thread doesn't come out of MPI in time.
  Result<void> rebuild() override;

 private:
  MpiSession& session_;
  MpiCommunicator& communicator_;
  MessageChannel& channel_;
};

}  // namespace footplate
