#include "console/host/run/event_ring.h"

#include <utility>

#include "protocol/frame.h"

namespace footplate::host {

void EventRing::push(std::string topic, const Json& time, const Json& data) {
  std::string line =
      to_line({{"type", "event"}, {"sequence", next_++}, {"topic", topic}, {"time", time}, {"data", data}});
  events_.push_back({std::move(topic), std::move(line)});
  if (events_.size() > capacity_) events_.pop_front();
}

std::optional<std::string> EventRing::next_for(Reader& reader) const {
  if (reader.next < oldest_sequence()) {
    reader.lost += oldest_sequence() - reader.next;
    reader.next = oldest_sequence();
  }
  while (reader.next < next_) {
    const Event& event = events_[reader.next - oldest_sequence()];
    ++reader.next;
    if (!reader.topics.contains("*") && !reader.topics.contains(event.topic)) continue;
    if (reader.lost == 0) return event.line;
    return "{\"lost\":" + std::to_string(std::exchange(reader.lost, 0)) + "," + event.line.substr(1);
  }
  return std::nullopt;
}

}  // namespace footplate::host
