#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "console/client/link/console_lines_json.h"
#include "protocol/frame.h"

namespace footplate {

using Deadline = std::chrono::steady_clock::time_point;

/// A connection to a run's console (docs/protocol.md, "Clients and the console"). One thread.
class Connection {
 public:
  /// Connects and reads the server's first line. Errors: unreachable (nobody listens, another user's socket,
  /// another protocol version), timed_out; those of the console, as refused: it has all the clients that it
  /// takes.
  static Result<Connection> open(const std::string& socket_path, Deadline deadline);

  Connection(Connection&& other) noexcept;
  Connection& operator=(Connection&&) = delete;
  ~Connection();

  /// The server's first line.
  const ConsoleHello& hello() const { return hello_; }

  /// Readable: receive() has something. Lines it has read already aren't told by it.
  int fd() const { return fd_; }

  /// Sends one request. Errors: unreachable; (usage) the request is too long.
  Result<void> send(const ClientRequest& request, int id);

  /// The next line from the server, whether this build knows it or not; nothing at the deadline, or once
  /// `wake_fd` is readable.
  Result<std::optional<ConsoleLine>> receive(Deadline deadline, int wake_fd = -1);

  /// Sends `request` with an id and waits for its answer, passing over everything else. Errors: the answer's
  /// own kind, unreachable, timed_out.
  Result<Json> request(const ClientRequest& request, Deadline deadline);

  /// The same, with the answer's value as a T. Error (failed): it isn't one.
  template <class T>
  Result<T> request_as(const ClientRequest& asked, Deadline deadline) {
    return answer_as<T>(request(asked, deadline));
  }

 private:
  explicit Connection(int fd) : fd_(fd) {}

  Result<std::optional<Json>> next_line(Deadline deadline, int wake_fd);

  int fd_;
  LineReader reader_;
  ConsoleHello hello_;
  int next_id_ = 1;
};

}  // namespace footplate
