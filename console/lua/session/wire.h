#pragma once

#include <chrono>
#include <deque>
#include <map>
#include <optional>
#include <variant>

#include "console/lua/session/console_port.h"
#include "protocol/frame.h"

namespace footplate::lua {

/// Descriptor 3 of footplate-lua: the console at its other end. Used by one thread at a time. The process
/// ends itself (_exit) as soon as the console is gone: nobody is left to hear more. So it does, and says why,
/// at a line that it can't read: what it waits for might have been in there.
class Wire final : public ConsoleLink {
 public:
  explicit Wire(int fd) : fd_(fd) {}

  /// What the console wants run.
  using Task = std::variant<EvalChunk, RegisterChunk, HandleRule>;

  /// Called for each `settings` message, whenever one is read.
  std::function<void(const SettingsUpdate& update)> on_settings;

  /// Called for each `handle` that comes while a request of the script is waited for; one at a time.
  std::function<void(const HandleRule& rule)> on_handle;

  /// The first line, blocking.
  SessionHello hello();

  /// The next task, blocking. Output belongs to it from then on.
  Task next();

  void send(const FromSession& message);

  Result<Json> ask(std::string_view op, Json fields, const Note& note, std::optional<Time> left) override;
  void output(std::string_view text, OutputStream stream) override;
  bool interrupted() override;
  void clear_interrupt() override { interrupted_ = false; }

 private:
  using Reply = std::variant<SessionAnswer, SessionNote>;

  using Clock = std::chrono::steady_clock;

  /// Reads what is there, waiting for it if `block`, at the longest until `end`, and takes it.
  void read(bool block, std::optional<Clock::time_point> end = {});
  void take(SessionHello hello) { hello_ = std::move(hello); }
  void take(EvalChunk chunk) { tasks_.push_back(std::move(chunk)); }
  void take(RegisterChunk chunk) { tasks_.push_back(std::move(chunk)); }
  void take(HandleRule rule) { tasks_.push_back(std::move(rule)); }
  void take(InterruptChunk /*interrupt*/) { interrupted_ = true; }
  void take(const SettingsUpdate& update) {
    if (on_settings) on_settings(update);
  }
  void take(SessionAnswer answer) { take_reply(std::move(answer)); }
  void take(SessionNote note) { take_reply(std::move(note)); }
  void take_reply(Reply reply);
  void run_handlers();

  int fd_;
  LineReader reader_;
  std::optional<SessionHello> hello_;
  std::deque<Task> tasks_;  ///< what next() gives out
  /// Answers and notes for the requests being waited for: the script's, and the one of a handler meanwhile.
  std::map<std::uint64_t, std::deque<Reply>> replies_;
  std::uint64_t asked_ = 0;  ///< id of the last request
  bool handling_ = false;
  bool interrupted_ = false;
  Json task_;  ///< id of the one that output belongs to
};

}  // namespace footplate::lua
