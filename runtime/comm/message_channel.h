#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

namespace footplate {

/// An encoded message (runtime/watch/messages.h), shared by all whom it is on its way to. Not null.
using MessageBytes = std::shared_ptr<const std::vector<std::uint8_t>>;

struct Message {
  int source = 0;
  std::vector<std::uint8_t> bytes = {};
};

/// Small messages between ranks, on which control runs. One thread (the control thread) uses it.
/// Between two ranks messages arrive in the order sent, and none is lost while no rank dies. Once one has
/// (world.h), messages between processes may be lost until rebuilt(); those to oneself are not.
class MessageChannel {
 public:
  virtual ~MessageChannel() = default;
  virtual int rank() const = 0;
  virtual int world_size() const = 0;

  /// Returns without waiting for the receiver. A message to oneself is there at once.
  virtual void send(int to, const MessageBytes& bytes) = 0;

  /// To every rank, oneself included, in order.
  virtual void send_to_all(const MessageBytes& bytes) {
    for (int rank = 0; rank < world_size(); ++rank) send(rank, bytes);
  }

  /// The same for what may lie until the receiver looks anyway (heartbeats): doesn't end its wait().
  virtual void send_quietly(int to, const MessageBytes& bytes) { send(to, bytes); }

  /// The next message, if one is here.
  virtual std::optional<Message> poll() = 0;

  /// Sleeps until a message may be here, wake() was called, `extra_fd` (-1: none) is readable or
  /// `at_most` has passed. May return early.
  virtual void wait(std::chrono::milliseconds at_most, int extra_fd) = 0;

  /// Whether every message ends a wait() as it arrives. Where not (ranks on other hosts), wait() looks
  /// for messages now and then; whoever expects an answer asks it to wait shorter.
  virtual bool rings() const { return true; }

  /// Ends a wait() from any thread. Async-signal-safe.
  virtual void wake() = 0;

  /// Ends the wait() of every other rank that can be rung at, without a message. Any of them may be dead.
  virtual void wake_peers() {}

  /// The world was made anew: rank, world size and peers are those of now, and what came from others before
  /// is forgotten. World::rebuild() calls it.
  virtual void rebuilt() {}
};

}  // namespace footplate
