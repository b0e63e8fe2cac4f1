#include "console/host/event_ring.h"

#include <algorithm>

namespace footplate::host {

void EventRing::push(std::string topic, const Json& time, const Json& data) {
  events_.push_back({{"type", "event"},
                     {"sequence", next_++},
                     {"topic", std::move(topic)},
                     {"time", time},
                     {"data", data}});
  if (events_.size() > capacity_) events_.pop_front();
}

Json EventRing::next_for(Reader& reader) const {
  if (reader.next < oldest_sequence()) {
    reader.lost += oldest_sequence() - reader.next;
    reader.next = oldest_sequence();
  }
  while (reader.next < next_) {
    const Json& event = events_[reader.next - oldest_sequence()];
    ++reader.next;
    if (!reader.topics.contains("*") && !reader.topics.contains(event["topic"].get_ref<const std::string&>()))
      continue;
    Json line = event;
    if (reader.lost > 0) line["lost"] = std::exchange(reader.lost, 0);
    return line;
  }
  return nullptr;
}

}  // namespace footplate::host
