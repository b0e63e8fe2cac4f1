#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "runtime/comm/rank_set.h"

namespace footplate {

/// An encoded message (runtime/watch/messages.h), shared by all whom it is on its way to. Not null.
using MessageBytes = std::shared_ptr<const std::vector<std::uint8_t>>;

struct Message {
  int source = 0;
  std::vector<std::uint8_t> bytes = {};
  RankSet others = {};  ///< who say the same besides `source`
};

/// Ranks that are silent, and for how long.
using Silences = std::vector<std::pair<int, std::chrono::milliseconds>>;

/// Of which ranks there was a sign of life of late.
struct HeardOf {
  RankSet well;
  Silences silent;
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

  /// The same to each of these.
  virtual void send_to(const std::vector<int>& ranks, const MessageBytes& bytes) {
    for (const int rank : ranks) send(rank, bytes);
  }

  /// From rank 0 to every other one. What is sent to one rank alone may overtake it.
  virtual void send_to_others(const MessageBytes& bytes) {
    std::vector<int> others;
    for (int rank = 0; rank < world_size(); ++rank)
      if (rank != this->rank()) others.push_back(rank);
    send_to(others, bytes);
  }

  /// From rank 0 to every rank, oneself included.
  void send_to_all(const MessageBytes& bytes) {
    send(rank(), bytes);
    send_to_others(bytes);
  }

  /// For what may lie until the receiver looks anyway (heartbeats): doesn't end its wait().
  virtual void send_quietly(int to, const MessageBytes& bytes) { send(to, bytes); }

  /// The last message to rank 0: after it this rank hands nothing on any more.
  virtual void leave(const MessageBytes& bytes) { send(0, bytes); }

  /// Whether no message comes through other ranks.
  virtual bool is_direct() const { return true; }

  /// How many other ranks a message from the furthest one comes through on its way here, and one more: 0 on a
  /// rank that no other one sends to.
  virtual int height() const { return rank() == 0 ? 1 : 0; }

  /// On rank 0, now and then: what is known of ranks that are heard through others. Nothing: every rank sends
  /// here itself, or there is nothing new.
  virtual std::optional<HeardOf> heard_of() { return std::nullopt; }

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
