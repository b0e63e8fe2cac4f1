#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "protocol/messages/event.h"
#include "runtime/base/clock.h"
#include "runtime/comm/world.h"
#include "runtime/watch/messages.h"

namespace footplate {

/// What has happened to a world on the way to the next one.
struct RecoveryStory {
  Membership before;                ///< the loss, or the admission
  std::string remedied;             ///< why all have rebuilt though no rank died; empty: one did
  SteadyClock::time_point since{};  ///< it was noticed
  std::string why_lost = {};        ///< as of ControlOptions
};

/// By rank of `after`: its number in `before`; -1: it wasn't there.
std::vector<int> numbers_before(const Membership& before, const Membership& after);

/// Who of `before` isn't in `after`, by their numbers in `before`.
std::vector<int> lost_between(const Membership& before, const Membership& after);
/// The same, by their origins.
std::vector<int> origins_lost_between(const Membership& before, const Membership& after);

/// The event for the ranks going on as `verdict` says.
RankChange recovery_report(const RecoveryStory& story, const Membership& after,
                           const message::Rejoin& verdict, SteadyClock::time_point now);

}  // namespace footplate
