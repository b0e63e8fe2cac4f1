#include "console/host/run/event_ring.h"

#include <algorithm>
#include <utility>

#include "protocol/frame.h"

namespace footplate::host {

void EventRing::push(Event event) {
  event.sequence = next_++;
  event.hold = event.lost = 0;
  Kept kept{topic_of(event.data), to_line(to_json(event)), std::nullopt};
  if (auto* metrics = std::get_if<LoggedMetrics>(&event.data);
      metrics != nullptr && !metrics->is_of_evaluation())
    kept.training = std::move(*metrics);
  bytes_ += kept.line.size();
  events_.push_back(std::move(kept));
  while (events_.size() > 1 && (events_.size() > capacity_ || bytes_ > most_bytes_)) {
    bytes_ -= events_.front().line.size();
    events_.pop_front();
  }
}

std::optional<std::string> EventRing::next_for(Reader& reader) const {
  if (reader.next < oldest_sequence()) {
    reader.lost += oldest_sequence() - reader.next;
    reader.next = oldest_sequence();
  }
  while (reader.next < next_) {
    const Kept& event = events_[reader.next - oldest_sequence()];
    ++reader.next;
    if (reader.topics && !reader.topics->contains(event.topic)) continue;
    if (reader.lost == 0) return event.line;
    return "{\"lost\":" + std::to_string(std::exchange(reader.lost, 0)) + "," + event.line.substr(1);
  }
  return std::nullopt;
}

const LoggedMetrics* EventRing::next_of_training(std::uint64_t& next) const {
  for (next = std::max(next, oldest_sequence()); next < next_;)
    if (const Kept& event = events_[next++ - oldest_sequence()]; event.training) return &*event.training;
  return nullptr;
}

}  // namespace footplate::host
