#include "runtime/comm/mpi/mpi_world.h"

#include <chrono>

#include "runtime/comm/mpi/exchange_bells.h"

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
  renew();
  return {};
}

void MpiWorld::renew() {
  communicator_.offer();
  channel_.rebuilt();
}

void MpiWorld::renew_grown() {
  renew();
  bells_ = has_several_hosts(session_) ? exchange_bells(session_) : nullptr;
}

void MpiWorld::set_invitation(std::vector<std::string> command, std::chrono::milliseconds at_most) {
  joining_command_ = std::move(command);
  guest_takes_ = at_most;
}

void MpiWorld::invite(int number, const std::string& greeting) {
  if (joining_command_.empty() || joining_rank() != JoiningRank::none) return;
  auto command = joining_command_;
  command.push_back(std::to_string(number));
  invitation_ =
      std::make_unique<Invitation>(std::move(command), greeting, guest_takes_, [this] { channel_.wake(); });
}

JoiningRank MpiWorld::joining_rank() const {
  return invitation_ ? invitation_->state() : JoiningRank::none;
}

std::string MpiWorld::guest_failure() const {
  return invitation_ ? invitation_->failure() : "";
}

void MpiWorld::dismiss() {
  if (invitation_) invitation_->dismiss();
}

Result<void> MpiWorld::grow(const std::string& welcome) {
  communicator_.close();
  if (!communicator_.wait_idle(kLeaveMpi))
    return fail(ErrorKind::failed, "a collective was under way as a replacement was to join");
  const bool knows = session_.rank() == 0 && invitation_ != nullptr;
  if (auto grown = session_.grow(knows ? invitation_->welcome(welcome) : MPI_COMM_NULL); !grown) return grown;
  renew_grown();
  return {};
}

Result<void> MpiWorld::join() {
  communicator_.close();
  if (auto joined = session_.join(); !joined) return joined;
  renew_grown();
  return {};
}

}  // namespace footplate
