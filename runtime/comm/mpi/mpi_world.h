#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "runtime/comm/message_channel.h"
#include "runtime/comm/mpi/invitation.h"
#include "runtime/comm/mpi/mpi_communicator.h"
#include "runtime/comm/mpi/mpi_session.h"
#include "runtime/comm/remote_bells.h"
#include "runtime/comm/world.h"

namespace footplate {

/// The world over MPI's extension for fault tolerance (ULFM). Everything it is made from outlives it.
class MpiWorld final : public World {
 public:
  /// Both are of `session`.
  MpiWorld(MpiSession& session, MpiCommunicator& communicator, MessageChannel& channel);

  /// Before invite(): what a joining rank is started with, program and arguments, to which its number is
  /// appended; how long it may take to get ready.
  void set_invitation(std::vector<std::string> command, std::chrono::milliseconds at_most);

  const Membership& members() const override { return session_.members(); }
  bool broken() const override { return session_.lost(); }
  /// Error: also where the communication thread doesn't come out of MPI in time.
  Result<void> rebuild() override;

  void invite(int number, const std::string& greeting) override;
  JoiningRank joining_rank() const override;
  std::string guest_failure() const override;
  void dismiss() override;
  Result<void> grow(const std::string& welcome) override;

  /// A joining rank, once it has been welcomed.
  Result<void> join();

  /// After grow() or join(): bells for whoever watches the other hosts, that know those of all ranks. Null:
  /// all ranks are on one host, or this rank can't be rung.
  std::unique_ptr<RemoteBells> take_bells() { return std::move(bells_); }

 private:
  /// The communicator and the channel are the session's of now.
  void renew();
  /// The same with more ranks than before.
  void renew_grown();

  MpiSession& session_;
  MpiCommunicator& communicator_;
  MessageChannel& channel_;
  std::vector<std::string> joining_command_;
  std::chrono::milliseconds guest_takes_{0};
  std::unique_ptr<Invitation> invitation_;  ///< rank 0
  std::unique_ptr<RemoteBells> bells_;
};

}  // namespace footplate
