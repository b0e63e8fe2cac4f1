#pragma once

#include "protocol/fd.h"
#include "protocol/frame.h"

namespace footplate::host {

/// One non-blocking stream of JSON lines: rank 0, a client, or a session's Lua.
class Connection {
 public:
  Connection(Fd fd, std::size_t unread_limit) : fd_(std::move(fd)), writer_(unread_limit) {}

  int fd() const { return fd_.get(); }

  /// What poll() should wait for.
  short events() const;

  enum class Read { some, nothing, end };
  /// Takes in what is there, at most 256 KiB.
  Read read();

  /// The next whole line. Error: one longer than kMaxFrameBytes.
  Result<std::optional<std::string>> next_line() { return reader_.next(); }

  /// False where the peer has left too much unread; nothing is queued then.
  bool send(const Json& message) { return writer_.push(message); }
  /// The same for a line that is made already, with its end.
  bool send_line(std::string_view line) { return writer_.push_line(line); }

  /// False when the peer is gone.
  bool flush() { return writer_.flush(fd_.get()); }

  std::size_t unsent() const { return writer_.pending(); }
  void stop_reading() { reading_ = false; }
  bool reading() const { return reading_; }
  void close() { fd_ = Fd(); }

 private:
  Fd fd_;
  LineReader reader_;
  LineWriter writer_;
  bool reading_ = true;
};

}  // namespace footplate::host
