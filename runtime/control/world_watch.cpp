#include "runtime/control/world_watch.h"

#include <algorithm>

namespace footplate {
namespace {

std::optional<CollectiveTimeouts> timeouts_of(const WorldWatch::Parts& parts) {
  if (parts.timeouts == nullptr) return std::nullopt;
  return CollectiveTimeouts(
      {parts.status, parts.channel.world_size(), parts.send_all,
       [report = parts.report](Json data) { report("warn", std::move(data)); }, parts.times},
      *parts.timeouts);
}

}  // namespace

WorldWatch::WorldWatch(const Parts& parts, const Settings& now)
    : rank_barrier_({parts.status, parts.channel.world_size(), parts.send_all}),
      advice_({parts.schema, parts.status, parts.ledger, parts.channel.world_size(), parts.first_order_id,
               parts.order, [report = parts.report](Json data) { report("warn", std::move(data)); }}),
      timeouts_(timeouts_of(parts)),
      collectives_({parts.status, parts.ledger, parts.channel.world_size(), parts.send_all, parts.report,
                    parts.times, &advice_, timeouts_ ? &*timeouts_ : nullptr}),
      stacks_({parts.status, parts.channel.world_size(),
               [&channel = parts.channel](int to, const Json& message) { channel.send(to, message); },
               parts.report, parts.times}) {
  advice_.follow(now.to_json());
  follow(now);
}

void WorldWatch::follow(const Settings& settings) {
  if (timeouts_) timeouts_->follow(settings);
}

void WorldWatch::handle(int source, const Json& message, Clock::time_point now) {
  rank_barrier_.handle(source, message, now);
  collectives_.handle(source, message, now);
  if (timeouts_) timeouts_->handle(source, message);
  stacks_.handle(source, message, now);
}

void WorldWatch::tick(Clock::time_point now) {
  rank_barrier_.tick(now);
  collectives_.tick(now);
  advice_.tick(now);
}

CollectiveTimeouts::Due WorldWatch::tick_timeouts(Clock::time_point now) {
  return timeouts_ ? timeouts_->tick(now) : CollectiveTimeouts::Due::nothing;
}

WorldWatch::Clock::time_point WorldWatch::next_tick() const {
  auto next = std::min({rank_barrier_.next_tick(), collectives_.next_tick(), stacks_.next_tick()});
  if (timeouts_) next = std::min(next, timeouts_->next_tick());
  return next;
}

bool WorldWatch::awaiting() const {
  return rank_barrier_.awaiting_ranks() || collectives_.awaiting_answers() || stacks_.awaiting_answers() ||
         (timeouts_ && timeouts_->awaiting_ranks());
}

}  // namespace footplate
