#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "protocol/frame.h"
#include "protocol/json.h"

namespace footplate {

using Deadline = std::chrono::steady_clock::time_point;

/// A connection to a run's console (docs/protocol.md, "Clients and the console"). One thread.
class Connection {
 public:
  /// Connects and reads the server's first line. Errors: unreachable (nobody listens, another user's socket,
  /// another protocol version), timed_out.
  static Result<Connection> open(const std::string& socket_path, Deadline deadline);

  Connection(Connection&& other) noexcept;
  Connection& operator=(Connection&&) = delete;
  ~Connection();

  /// The server's first line.
  const Json& hello() const { return hello_; }

  /// Readable: receive() has something. Lines it has read already aren't told by it.
  int fd() const { return fd_; }

  /// Sends one request as it is. Error: unreachable; also where the request is too long (usage).
  Result<void> send(const Json& request);

  /// The next line from the server; nothing at the deadline, or once `wake_fd` is readable.
  Result<std::optional<Json>> receive(Deadline deadline, int wake_fd = -1);

  /// Sends `request` with an id and waits for its answer, passing over everything else. Errors: the answer's
  /// own kind, unreachable, timed_out.
  Result<Json> request(Json request, Deadline deadline);

 private:
  explicit Connection(int fd) : fd_(fd) {}

  int fd_;
  LineReader reader_;
  Json hello_;
  int next_id_ = 1;
};

/// The error that an answer of type `error` carries.
Error error_of(const Json& answer);

}  // namespace footplate
