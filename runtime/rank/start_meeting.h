#pragma once

#include "runtime/comm/agree.h"
#include "runtime/rank/arrival_note.h"

namespace footplate {

/// The places on the way to the first step at which all ranks meet. `footplate run` names the rank that
/// others wait for there (ArrivalNote). Collective.
class StartMeeting {
 public:
  StartMeeting(Communicator& communicator, ArrivalNote& arrival)
      : communicator_(communicator), arrival_(arrival) {}

  /// What `together` gives, which all ranks call.
  template <typename Together>
  auto meet(const Together& together) {
    arrival_.waits_in("a meeting of the start");
    auto agreed = together();
    arrival_.is_at("after that meeting");
    return agreed;
  }

  /// One verdict of all ranks.
  Result<void> agree(const Result<void>& mine) {
    return meet([&] { return footplate::agree(communicator_, mine); });
  }

  Communicator& communicator() { return communicator_; }
  ArrivalNote& arrival() { return arrival_; }

 private:
  Communicator& communicator_;
  ArrivalNote& arrival_;
};

}  // namespace footplate
