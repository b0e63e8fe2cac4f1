#pragma once

#include <string>

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

  /// The same where rank 0 has something to do before that may take long: the others' wait is no wait for a
  /// rank that doesn't arrive. `work`: what they wait for.
  template <typename Together>
  auto meet_after(const std::string& work, const Together& together) {
    if (communicator_.rank() == 0) return meet(together);
    arrival_.is_at("a meeting of the start, until rank 0 is through with " + work);
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
