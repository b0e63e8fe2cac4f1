#pragma once

#include <chrono>
#include <functional>
#include <lua.hpp>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "console/lua/core/bind.h"
#include "console/lua/core/limits.h"
#include "console/lua/session/console_port.h"
#include "console/lua/session/stage.h"
#include "protocol/schema.h"
#include "protocol/settings.h"

namespace footplate::lua {

/// What a process of footplate-lua is for.
enum class Kind {
  session,  ///< the chunks of one client
  job,      ///< a job script, and the rules that it registers
  rules,    ///< the run's rules, from the source of the chunks that registered them
  check,    ///< footplate check --script: nothing is sent anywhere
};

/// What the console tells a session when it starts.
struct Greeting {
  Schema schema;
  Settings settings;
  Json run = Json::object();  ///< name, id, …
  std::string session;        ///< "s3"
  std::string user;
  Role role = Role::admin;
  Limits limits;
  Kind kind = Kind::session;
  std::vector<std::string> arguments;  ///< a job's, after --
  bool resumed = false;                ///< a job that has run before in this run
  bool trusted() const { return kind == Kind::job || kind == Kind::check; }  ///< gets io and os

  /// From the console's hello.
  static Result<Greeting> from_json(const Json& hello);
};

/// What became of a chunk.
struct Outcome {
  std::string text;               ///< the last expression's value for people, or ""
  Json value;                     ///< and for programs
  std::optional<Error> error;     ///< set: the chunk failed and what it had staged is dropped
  std::optional<int> error_line;  ///< in the chunk, where known
};

/// A rule as its chunk registered it; handles share it. What the console keeps of it is `spec`
/// (docs/protocol.md, "Rules").
struct RegisteredRule {
  Json spec;
  std::int64_t number = 0;  ///< the console's; 0 until it has one
  bool dropped = false;     ///< its chunk failed, or off() came before the chunk's end
};

/// What a running chunk or handler has of its own. A job's handlers run while its script waits.
struct Activity {
  /// What becomes of what it asks for.
  enum class Mode {
    chunk,        ///< orders are sent, rules registered
    registering,  ///< only its rules take effect; it ends at its first wait
    handler,      ///< of a rule: orders are sent
  };

  Activity(const Schema& schema, const Settings& settings, Mode its_mode)
      : mode(its_mode), stage(schema, settings) {}

  Mode mode;
  Stage stage;
  ChunkClock clock;
  std::chrono::duration<double> limit{0};
  std::chrono::duration<double> order_timeout{30};
  std::string source;                                  ///< for the journal
  std::string name;                                    ///< of the chunk
  std::string stop;                                    ///< why it has to end; empty while it may go on
  std::size_t printed = 0;                             ///< bytes
  std::optional<Error> last_error;                     ///< of a binding: gives the chunk's error its kind
  std::vector<std::shared_ptr<RegisteredRule>> rules;  ///< that it has registered and not yet sent
  bool asks = false;                                   ///< a person sits at its client, who can be asked
  bool has_waited = false;
  bool ended_early = false;  ///< at its first wait, as registering does
  std::string waits_for;     ///< that wait
  std::string planned;       ///< footplate check: what it would have ordered by then
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
  /// The outcome's value is {"rules": [spec]}.
  Outcome register_chunk(std::int64_t chunk, const std::string& code, const std::string& name);

  /// Runs a rule's function on an event (docs/protocol.md, `handle`); may be called while the job's script
  /// waits in ask(). What it assigns and calls is one order. The outcome's value is {"ran_ms"}.
  Outcome handle(const Json& request);

  /// Settings that an order moved: {name: {"value","source"}}.
  void settings_changed(const Json& settings);

  // For the bindings.
  const Schema& schema() const { return greeting_.schema; }
  const Settings& settings() const { return greeting_.settings; }
  const Greeting& greeting() const { return greeting_; }
  Stage& stage() { return now_->stage; }
  Activity& activity() { return *now_; }
  void print(std::string_view text);
  void talk(std::string_view text);

  /// Sends what is staged and waits until it is applied (an order for a later step: until it is committed).
  /// Throws ScriptError: refused, timed out (and withdrawn), interrupted (and withdrawn).
  void commit();

  /// What commit() would send, no longer staged: checked as a whole, and a person asked about it. Throws
  /// ScriptError, also where the answer is no.
  std::vector<std::shared_ptr<StagedOrder>> take_asked();

  /// The same for what has to be put back although the chunk is being ended by Ctrl-C; a second one counts.
  void commit_at_last();

  /// footplate check: rules, the first order and the first wait of a script, {"rules", "order", "waits"}.
  Outcome check(const std::string& code, const std::string& name);

  /// Before a wait of the script: commits. Throws where nothing may be waited for.
  void begin_wait(const char* what);

  /// Takes a rule on whose function is at the stack's `function`. Throws ScriptError where none may be
  /// registered.
  std::shared_ptr<RegisteredRule> add_rule(lua_State* state, Json spec, int function);

  /// A request to the console, or a ScriptError. `waiting`: the time doesn't count.
  Json ask(std::string_view op, Json fields = Json::object(), const ConsoleLink::Note& note = {});

  /// ask() for what a script only looks at: ends it where its time is up, since a loop of such questions may
  /// take for ever to come to the hook.
  Json look(std::string_view op, Json fields = Json::object());

  /// The final report of a call of an order that was sent. Throws ScriptError as commit does, and where
  /// the call failed or was cancelled.
  Json wait_call(StagedOrder& order, int call, std::optional<double> timeout_s);

  /// Withdraws an order, or takes it out of what is staged; where it is applied, cancels its call. Returns
  /// why there is nothing to cancel, or nothing.
  std::string cancel(StagedOrder& order, int call);

  /// Brings order.report up to date.
  void refresh(StagedOrder& order);

  /// Where a person sits at the client: asks, and throws ScriptError where the answer is no.
  void confirm(const std::string& text);

  void remember_error(const std::string& message, ErrorKind kind) override;
  std::string unknown_name(const std::string& name, const std::vector<std::string>& known) const override;
  std::string refused_variable(const std::string& name) const override;

 private:
  static constexpr int kHookEvery = 10'000;  ///< instructions; the cost is the same from 100 to 100,000

  /// Where a rule's function is kept: by its chunk, and its place among that chunk's rules.
  using RuleKey = std::pair<std::int64_t, std::int64_t>;

  static void hook(lua_State* state, lua_Debug* activation);
  static int run_chunk(lua_State* state);
  static int run_handler(lua_State* state);

  /// Whether the running chunk has been interrupted or has used up its time; stays so until the next one.
  bool out_of_time();

  std::unique_ptr<Activity> new_activity(Activity::Mode mode, std::chrono::duration<double> limit);
  Outcome evaluate_in(int environment, const std::string& code, const std::string& name);
  void finish_activity();
  void plan();
  void send_rules();
  void drop_rules();
  void ask_person(const std::vector<std::shared_ptr<StagedOrder>>& orders);
  void send(StagedOrder& order);
  void await(StagedOrder& order);
  void warn_if_late(const StagedOrder& order);
  void withdraw_late(StagedOrder& order, bool interrupted);
  Outcome failed(const std::string& message, const std::string& name);
  std::string message_on_top(lua_State* state) const;

  Greeting greeting_;
  ConsoleLink& link_;
  CappedAllocator allocator_;
  lua_State* state_ = nullptr;
  lua_State* handlers_ = nullptr;  ///< a thread of state_, for rules: their job's script may be in a wait
  int environment_ = 0;            ///< reference of the environment that chunks run in
  std::unique_ptr<Activity> now_;
  std::int64_t chunk_ = 0;  ///< the registering one; 0: a job's script
  std::map<RuleKey, int> functions_;
  std::int64_t job_rules_ = 0;  ///< that this job has registered
};

/// The session that a Lua state, or a coroutine of it, belongs to.
Session& session_of(lua_State* state);

}  // namespace footplate::lua
