#pragma once

#include <chrono>
#include <functional>
#include <lua.hpp>
#include <optional>
#include <string>
#include <vector>

#include "console/lua/core/bind.h"
#include "console/lua/core/limits.h"
#include "console/lua/session/chunk_console.h"
#include "console/lua/session/order_sender.h"
#include "console/lua/session/rule_book.h"

namespace footplate::lua {

/// What became of a chunk.
struct Outcome {
  std::string text;               ///< the last expression's value for people, or ""
  Json value;                     ///< and for programs
  std::optional<Error> error;     ///< set: the chunk failed and what it had staged is dropped
  std::optional<int> error_line;  ///< in the chunk, where known
};

/// What became of a chunk that was run for its rules.
struct Registered {
  Outcome outcome;
  std::vector<RuleSpec> rules;
};

/// What became of a rule's function.
struct Handled {
  Outcome outcome;
  std::optional<double> ran_ms;  ///< nothing: it isn't in this process
};

/// What a script would do up to its first wait, or its end.
struct Checked {
  Outcome outcome;
  std::vector<RuleSpec> rules;
  std::string order;  ///< what it would have ordered
  std::string waits;  ///< what for; empty: it ends without a wait
};

/// Puts what chunks can use besides Lua's own into the table at stack index `own`, and variables into the
/// environment at `environment`. May leave values above these on the stack.
using OpenNames = std::function<void(lua_State* state, int own, int environment)>;

/// One session: a Lua state with the names that `open_names` gives it. One thread at a time.
class Session final : public StateOwner {
 public:
  /// `link` outlives the session.
  Session(Greeting greeting, ConsoleLink& link, const OpenNames& open_names);
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  /// Runs `code` as one chunk: an expression or statements. Its staged changes become one order at its
  /// end; `timeout` is how long each of its orders is waited for.
  /// `asks`: a person is asked first about what is dangerous or unusual.
  Outcome evaluate(const std::string& code, const std::string& name, std::chrono::duration<double> timeout,
                   bool asks = false);

  /// Runs a chunk again for its rules alone, with variables of its own, in the process of the run's rules.
  Registered register_chunk(std::int64_t chunk, const std::string& code, const std::string& name);

  /// Runs a rule's function on an event (docs/protocol.md, `handle`); may be called while the job's script
  /// waits in ask(). What it assigns and calls is one order.
  Handled handle(const HandleRule& rule);

  /// Settings that an order moved.
  void settings_changed(const SettingsUpdate& update);

  // For the bindings.
  const Schema& schema() const { return greeting_.schema; }
  const Settings& settings() const { return greeting_.settings; }
  const Greeting& greeting() const { return greeting_; }
  Stage& stage() { return activity().stage; }
  Activity& activity() { return console_.activity(); }
  OrderSender& orders() { return orders_; }
  RuleBook& rules() { return rules_; }
  void print(std::string_view text) { console_.print(text); }
  void talk(std::string_view text) { console_.talk(text); }
  void progress(std::string_view text) { console_.progress(text); }

  /// footplate check.
  Checked check(const std::string& code, const std::string& name);

  /// Before a wait of the script: commits. Throws where nothing may be waited for.
  void begin_wait(const char* what);

  /// A request to the console, one of requests_json.h: its answer, or a ScriptError.
  template <class Request>
  typename Request::Answer ask(const Request& request) {
    return console_.ask(request);
  }

  /// The same for what a script only looks at; ends it where its time is up.
  template <class Request>
  typename Request::Answer look(const Request& request) {
    return console_.look(request);
  }

  /// look() at what the ranks answer, which the chunk waits for.
  template <class Request>
  typename Request::Answer look_at_ranks(const Request& request) {
    return console_.look_at_ranks(request);
  }

  /// The result of a call, once it has ended, or what the order itself did (`call` < 0), as a wait of the
  /// script: what is staged is committed first. Throws ScriptError, as OrderSender::wait_call.
  Json wait_call(StagedOrder& order, int call, std::optional<double> timeout_s);

  void remember_error(const std::string& message, ErrorKind kind) override;
  std::string unknown_name(const std::string& name, const std::vector<std::string>& known) const override;
  std::string refused_variable(const std::string& name) const override;

 private:
  static constexpr int kHookEvery = 10'000;  ///< instructions; the cost is the same from 100 to 100,000

  static void hook(lua_State* state, lua_Debug* activation);
  static int run_chunk(lua_State* state);
  static int run_handler(lua_State* state);

  Outcome evaluate_in(int environment, const std::string& code, const std::string& name);
  void finish_activity();
  Outcome failed(const std::string& message, const std::string& name);

  Greeting greeting_;
  ChunkConsole console_;
  OrderSender orders_;
  RuleBook rules_;
  CappedAllocator allocator_;
  lua_State* state_ = nullptr;
  lua_State* handlers_ = nullptr;  ///< a thread of state_, for rules: their job's script may be in a wait
  int environment_ = 0;            ///< reference of the environment that chunks run in
};

/// The registry's key of the table with footplate's own names.
inline constexpr const char* kOwnNames = "footplate.own";

/// The session that a Lua state, or a coroutine of it, belongs to.
Session& session_of(lua_State* state);

}  // namespace footplate::lua
