#pragma once

#include <chrono>
#include <memory>
#include <string_view>

#include "console/lua/core/bind.h"
#include "console/lua/session/activity.h"
#include "console/lua/session/console_port.h"
#include "console/lua/session/greeting.h"
#include "console/lua/session/requests_json.h"

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
  /// How far something is that takes long: one line, in place of the one before it. Only where a person
  /// waits.
  void progress(std::string_view text);

  /// A request to the console, one of requests_json.h, and its answer.
  template <class Request>
  Result<typename Request::Answer> try_ask(const Request& request, const ConsoleLink::Note& note = {}) {
    const auto answer = link_.ask(Request::kOp, request::fields_of(request), note);
    if (!answer) return tl::unexpected(answer.error());
    return well_formed(Request::kOp, read_answer<typename Request::Answer>(*answer));
  }

  /// The same; an error is a ScriptError.
  template <class Request>
  typename Request::Answer ask(const Request& request, const ConsoleLink::Note& note = {}) {
    return or_throw(try_ask(request, note));
  }

  /// ask() for what a script only looks at: ends it where its time is up, since a loop of such questions may
  /// take for ever to come to the hook.
  template <class Request>
  typename Request::Answer look(const Request& request) {
    if (out_of_time()) throw ScriptError(now_->stop);
    return ask(request);
  }

  /// look() at what the ranks answer: that takes as long as they do, and isn't the chunk's time. It is the
  /// time of a rule, which has the others wait, and so it is while one is registered.
  template <class Request>
  typename Request::Answer look_at_ranks(const Request& request) {
    if (now_->mode == Activity::Mode::chunk) {
      const Waiting waiting(now_->clock);
      return look(request);
    }
    if (out_of_time()) throw ScriptError(now_->stop);
    const auto answer = link_.ask(Request::kOp, request::fields_of(request), {}, now_->clock.left());
    if (out_of_time()) throw ScriptError(now_->stop);
    return or_throw(well_formed(Request::kOp, answer.and_then(read_answer<typename Request::Answer>)));
  }

  /// The result of `action` as an Answer, one of those that read_answer() knows, or a ScriptError.
  template <class Answer>
  static Answer result_as(std::string_view action, const Json& result) {
    return or_throw(well_formed(action, read_answer<Answer>(result)));
  }

 private:
  template <class Answer>
  static Answer or_throw(Result<Answer> answer) {
    if (!answer) throw ScriptError(answer.error());
    return *std::move(answer);
  }
  template <class Answer>
  static Result<Answer> well_formed(std::string_view what, Result<Answer> answer) {
    if (!answer) return tl::unexpected(malformed(what, answer.error()));
    return answer;
  }
  static Error malformed(std::string_view what, const Error& error);

  const Greeting& greeting_;
  ConsoleLink& link_;
  std::unique_ptr<Activity> now_;
};

}  // namespace footplate::lua
