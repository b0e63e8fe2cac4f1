#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <set>
#include <string>

#include "protocol/json.h"

namespace footplate::host {

/// The latest events, numbered without gaps from 1. Readers keep a position each and fetch at their own
/// pace; what has left the ring before they came is counted for them.
class EventRing {
 public:
  explicit EventRing(std::size_t capacity) : capacity_(capacity) {}

  void push(std::string topic, const Json& time, const Json& data);

  std::uint64_t next_sequence() const { return next_; }
  std::uint64_t oldest_sequence() const { return next_ - events_.size(); }

  /// A reader's subscription.
  struct Reader {
    std::set<std::string> topics;  ///< "*" is all of them
    std::uint64_t next = 0;        ///< sequence number it wants next
    std::uint64_t lost = 0;        ///< events that left the ring unread, not yet told
  };

  /// The reader's next event as a line of docs/protocol.md, with its end, or nothing where it has read all.
  /// Moves the reader on.
  std::optional<std::string> next_for(Reader& reader) const;

 private:
  struct Event {
    std::string topic;
    std::string line;  ///< made once, however many read it
  };

  std::size_t capacity_;
  std::uint64_t next_ = 1;
  std::deque<Event> events_;
};

}  // namespace footplate::host
