#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "protocol/json.h"
#include "protocol/result.h"

namespace footplate {

/// Cuts a byte stream into lines of at most kMaxFrameBytes. One per connection; not thread-safe.
class LineReader {
 public:
  void append(std::string_view bytes) { buffer_.append(bytes); }

  /// The next complete line without its newline; nothing while it is incomplete. Error: the line is
  /// longer than kMaxFrameBytes, after which the connection can only be closed.
  Result<std::optional<std::string>> next();

 private:
  std::string buffer_;
  std::size_t start_ = 0;    ///< of the first line not yet handed out
  std::size_t scanned_ = 0;  ///< bytes already searched for a newline
};

/// Bytes on their way to one non-blocking descriptor, bounded. Not thread-safe.
class LineWriter {
 public:
  explicit LineWriter(std::size_t limit_bytes) : limit_(limit_bytes) {}

  /// False, and nothing queued, where the line would pass the limit.
  bool push(const Json& json);
  /// The same for a line that is made already, with its end.
  bool push_line(std::string_view line);

  /// Writes what the descriptor takes without blocking. False when the peer is gone.
  bool flush(int fd);

  bool empty() const { return start_ == buffer_.size(); }
  std::size_t pending() const { return buffer_.size() - start_; }

 private:
  std::string buffer_;
  std::size_t start_ = 0;
  std::size_t limit_;
};

}  // namespace footplate
