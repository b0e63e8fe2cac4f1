#pragma once

#include <chrono>
#include <memory>
#include <string_view>

#include "console/lua/session/activity.h"
#include "console/lua/session/console_port.h"
#include "console/lua/session/exchange_json.h"
#include "console/lua/session/greeting.h"

namespace footplate::lua {

/// The console as the running chunk or handler uses it: its requests, its output, and the end of its time.
/// Owns that activity. One thread.
class ChunkConsole {
 public:
  /// Both outlive it.
  ChunkConsole(const Greeting& greeting, ConsoleLink& link);

  Activity& activity() { return *now_; }
  ConsoleLink& link() { return link_; }

  /// Puts a new activity in place of the one that runs, which is returned.
  std::unique_ptr<Activity> begin(Activity::Mode mode, std::chrono::duration<double> limit);

  /// Goes on with what begin() returned.
  void go_on(std::unique_ptr<Activity> outer) { now_ = std::move(outer); }

  /// Whether the activity has been interrupted or has used up its time; stays so until its end.
  bool out_of_time();

  void print(std::string_view text);
  void talk(std::string_view text);

  /// A request to the console, or a ScriptError.
  Json ask(std::string_view op, Json fields = Json::object(), const ConsoleLink::Note& note = {});

  /// ask() for what a script only looks at: ends it where its time is up, since a loop of such questions may
  /// take for ever to come to the hook.
  Json look(std::string_view op, Json fields = Json::object());

  /// The same, whose answer is one of those that read_answer() knows.
  template <class Answer>
  Answer ask_for(std::string_view op, Json fields = Json::object(), const ConsoleLink::Note& note = {}) {
    return checked(op, read_answer<Answer>(ask(op, std::move(fields), note)));
  }
  template <class Answer>
  Answer look_for(std::string_view op, Json fields = Json::object()) {
    return checked(op, read_answer<Answer>(look(op, std::move(fields))));
  }

  /// What is called `what` and was read, or a ScriptError.
  template <class Answer>
  static Answer checked(std::string_view what, Result<Answer> read) {
    if (!read) refuse_malformed(what, read.error());
    return *std::move(read);
  }

 private:
  [[noreturn]] static void refuse_malformed(std::string_view what, const Error& error);

  const Greeting& greeting_;
  ConsoleLink& link_;
  std::unique_ptr<Activity> now_;
};

}  // namespace footplate::lua
