#pragma once

#include <chrono>
#include <deque>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "protocol/fd.h"
#include "protocol/frame.h"
#include "protocol/messages/link_messages.h"
#include "runtime/console_link/console_process.h"

namespace footplate {

/// Rank 0's end of the line to its console (docs/protocol.md, "Rank 0 and the console"). Nothing here
/// waits: a console that doesn't read loses events, one that doesn't read for long or dies is replaced,
/// at most once a second, and training goes on without. Control thread.
class ConsoleLink {
 public:
  using Clock = std::chrono::steady_clock;
  struct Parts {
    std::filesystem::path program;
    std::filesystem::path run_directory;
    std::function<RankZeroHello()> hello;  ///< first line to every new console
    std::function<void(ConsoleMessage)> on_message;
    std::function<void(pid_t)> started;            ///< a console
    std::function<void(const std::string&)> warn;  ///< the console died, couldn't be started, …
    std::chrono::milliseconds survives{};  ///< a start that is followed by so long a life wasn't in vain
  };

  /// Opens RUN/log/console.log, for all consoles to come: later the disk may hang, or be gone.
  explicit ConsoleLink(Parts parts);

  /// Reads, writes, and starts a console where there is none and one is due.
  void pump(Clock::time_point now);
  /// When pump() has something to do besides what makes fd() readable.
  Clock::time_point next_pump() const;
  /// To poll for reading; -1 while there is no console.
  int fd() const { return process_ ? process_->fd() : -1; }

  /// Whether what is sent now reaches a console.
  bool is_up() const { return process_ && !lost_; }

  /// Queues one line. Dropped where there is no console: the next one's hello tells what matters.
  void send(const RankZeroMessage& message);
  /// The same for what a slow console may lose.
  void send_event(const RankZeroMessage& message);

  /// Sends `end` as the last line and waits, up to `at_most`, until the console has read it and ended.
  void finish(const RunEnd& end, std::chrono::milliseconds at_most);

 private:
  void start(Clock::time_point now);
  void read_lines();
  void flush();
  void lose(const std::string& why);
  void warn_once(const std::string& text);

  Parts parts_;
  Fd log_;
  std::unique_ptr<ConsoleProcess> process_;
  std::optional<LineReader> reader_;
  std::optional<LineWriter> writer_;
  std::deque<Clock::time_point> starts_;  ///< within the last minute
  Clock::time_point started_{};           ///< the one that runs
  std::string last_warning_;
  Clock::time_point next_start_{};
  bool lost_ = false;  ///< the console is gone; pump() schedules the next
};

}  // namespace footplate
