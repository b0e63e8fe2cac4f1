#pragma once

#include <deque>
#include <map>
#include <optional>

#include "console/lua/session/console_port.h"
#include "protocol/frame.h"

namespace footplate::lua {

/// Descriptor 3 of footplate-lua: the console at its other end. Used by one thread at a time. The process
/// ends itself (_exit) as soon as the console is gone: nobody is left to hear more.
class Wire final : public ConsoleLink {
 public:
  explicit Wire(int fd) : fd_(fd) {}

  /// Called for each `settings` message, whenever one is read.
  std::function<void(const Json& settings)> on_settings;

  /// Called for each `handle` that comes while a request of the script is waited for; one at a time.
  std::function<void(const Json& request)> on_handle;

  /// The next `hello`, `eval`, `register` or `handle`, blocking.
  Json next();

  void send(const Json& message);

  Result<Json> ask(std::string_view op, Json fields, const Note& note) override;
  void output(std::string_view text, Stream stream) override;
  bool interrupted() override;
  void clear_interrupt() override { interrupted_ = false; }

  /// Id of the eval that output belongs to.
  void set_eval(Json id) { eval_ = std::move(id); }

 private:
  /// Reads what is there, waiting for it if `block`, and sorts it into requests_, answers and flags.
  void read(bool block);
  void sort(Json message);
  void run_handlers();

  int fd_;
  LineReader reader_;
  std::deque<Json> requests_;  ///< what next() gives out
  /// Answers and notes for the requests being waited for: the script's, and the one of a handler meanwhile.
  std::map<std::uint64_t, std::deque<Json>> answers_;
  std::uint64_t asked_ = 0;  ///< id of the last request
  bool handling_ = false;
  bool interrupted_ = false;
  Json eval_;
};

}  // namespace footplate::lua
