#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <set>
#include <string>

#include "protocol/messages/event.h"

namespace footplate::host {

/// The latest events, numbered without gaps from 1. Readers keep a position each and fetch at their own
/// pace; what has left the ring before they came is counted for them.
class EventRing {
 public:
  /// Keeps at most `capacity` events, and of their lines at most `bytes`; the newest in any case.
  EventRing(std::size_t capacity, std::size_t bytes) : capacity_(capacity), most_bytes_(bytes) {}

  /// Gives the event its number.
  void push(Event event);

  std::uint64_t next_sequence() const { return next_; }
  std::uint64_t oldest_sequence() const { return next_ - events_.size(); }

  /// A reader's subscription.
  struct Reader {
    std::optional<std::set<Topic>> topics;  ///< nothing: all of them
    std::uint64_t next = 0;                 ///< sequence number it wants next
    std::uint64_t lost = 0;                 ///< events that left the ring unread, not yet told
  };

  /// The reader's next event as a line of docs/protocol.md, with its end, or nothing where it has read all.
  /// Moves the reader on.
  std::optional<std::string> next_for(Reader& reader) const;

  /// The next logged metrics of training from `next` on; null where there are no more. Moves `next` on.
  const LoggedMetrics* next_of_training(std::uint64_t& next) const;

 private:
  struct Kept {
    Topic topic;
    std::string line;                       ///< made once, however many read it
    std::optional<LoggedMetrics> training;  ///< logged by the training loop, of any kind
  };

  std::size_t capacity_;
  std::size_t most_bytes_;
  std::size_t bytes_ = 0;  ///< of the lines of events_
  std::uint64_t next_ = 1;
  std::deque<Kept> events_;
};

}  // namespace footplate::host
