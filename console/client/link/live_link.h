#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "console/client/link/run_connection.h"
#include "console/client/runs/run_record.h"

namespace footplate {

/// A connection to a run's console that comes back by itself: after the console was replaced, and after the
/// run was started again, whose socket run.json names. Nothing here waits but ask_now(). One thread.
class LiveLink {
 public:
  using Answer = std::function<void(Result<Json>)>;
  using Clock = std::chrono::steady_clock;

  struct Events {
    std::function<void(const ConsoleHello& hello)> connected;
    std::function<void(const Error& why)> lost;         ///< open requests have been answered with `why`
    std::function<void(const ConsoleLine& line)> said;  ///< events, output and questions
  };

  LiveLink(std::filesystem::path run_directory, Events events);

  bool connected() const { return connection_ != nullptr; }
  int fd() const { return connection_ ? connection_->fd() : -1; }

  /// The run as its files say, as of the last look while there was no connection.
  const RunRecord& record() const { return record_; }

  /// Why there will be no connection, as things are: the console has said so, or is on another host.
  const std::optional<Error>& refusal() const { return refusal_; }
  /// Why the last try came to no connection; empty where the last one did, or where none was made.
  const std::string& why_not() const { return why_not_; }

  /// Sends a request; `answer` gets what comes of it, at once with `unreachable` where nobody is connected.
  /// Returns its id.
  int ask(const ClientRequest& request, Answer answer);

  /// The same, waiting for the answer while everything else goes on. Error: timed_out.
  Result<Json> ask_now(const ClientRequest& request, std::chrono::milliseconds at_most);

  /// Takes in what is there, at most kLinesALook lines; connects where there is no connection and a try is
  /// due. Whether more may be there.
  bool look();

  /// How long look() has nothing to do while fd() isn't readable.
  std::chrono::milliseconds patience() const;

  static constexpr int kLinesALook = 2000;

 private:
  void connect();
  void take(ConsoleLine line);
  void lose(const Error& why);

  std::filesystem::path directory_;
  Events events_;
  RunRecord record_;
  std::unique_ptr<Connection> connection_;
  std::optional<Error> refusal_;
  std::string why_not_;
  std::map<int, Answer> open_;
  int last_id_ = 0;
  Clock::time_point next_try_{};
};

}  // namespace footplate
