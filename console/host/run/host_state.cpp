#include "console/host/run/host_state.h"

#include <spdlog/spdlog.h>

#include <algorithm>

#include "protocol/iso_time.h"

namespace footplate::host {
namespace {

constexpr std::size_t kRankUnread =
    64U * 1024 * 1024;  ///< what rank 0 may leave unread: never reached unless it is dead

}  // namespace

HostState::HostState(ConsoleOptions its_options)
    : options(std::move(its_options)),
      rank(Fd(options.rank_fd), kRankUnread),  // all reads and writes pass MSG_DONTWAIT
      view(options.limits.silent_s),
      ring(static_cast<std::size_t>(options.limits.events),
           static_cast<std::size_t>(options.limits.event_bytes)),
      now(Clock::now()) {
  view.heard(now);
}

void HostState::to_rank(const ConsoleMessage& message) {
  if (!rank.send(to_json(message))) spdlog::error("a message for rank 0 is too long, or it reads no more");
}

void HostState::publish(EventData data) {
  Event event;
  event.data = std::move(data);
  event.time = iso_time(std::chrono::system_clock::now());
  ring.push(std::move(event));
}

void HostState::happened(AwaitedEvent event, Json data) {
  Happened& its = events[event];
  ++its.count;
  its.last = std::move(data);
}

std::optional<HostState::Clock::time_point> HostState::after(std::optional<double> seconds) const {
  if (!seconds) return std::nullopt;
  constexpr double kLongest = 1e9;
  const double bounded = *seconds > 0 ? std::min(*seconds, kLongest) : 0;  // NaN isn't above 0
  return now + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(bounded));
}

}  // namespace footplate::host
