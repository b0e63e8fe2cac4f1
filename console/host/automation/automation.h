#pragma once

#include <deque>
#include <filesystem>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "console/host/automation/rule_table.h"
#include "console/host/scripts/client.h"
#include "protocol/order.h"

namespace footplate::host {

/// What runs without a client: the run's rules, in a Lua process of their own, and its job scripts, in one
/// each. Kept in rules.json, so that a new console, a new Lua process and a new start of the run go on with
/// them. A part of Console, on its thread.
class Automation {
 public:
  using Clock = std::chrono::steady_clock;

  /// What it needs of the console.
  struct Ports {
    std::function<void(Client& from, const Json& message)> request;  ///< of a script: docs/protocol.md
    std::function<Json(const Client& of)> hello;                     ///< to a Lua process, without kind
    std::function<Result<std::unique_ptr<LuaProcess>>()> process;
    std::function<Result<std::string>(Client& from, Order order)> submit;
    std::function<void(const Json& line)> to_rank;
    std::function<void(std::uint64_t client)> forget_waits;
    std::function<std::int64_t()> step;
    std::function<Json()> metrics;
    std::function<void(const std::string& text)> log;
  };

  /// What the outcome of a registration is waited for by; set once.
  using Outcome = std::shared_ptr<std::optional<Result<Json>>>;

  Automation(std::filesystem::path run_directory, const Limits& limits, Ports ports);

  /// With rank 0's hello: reads rules.json and jobs.json, and starts what they have.
  void begin(const Json& run, const Json& status, const Json& reports);

  // What happens in the run.
  void status(const Json& status);
  void event(const std::string& topic, const Json& data, std::uint64_t hold);
  void order_report(const Json& report);
  /// What on("order") and run.wait{ event = "order" } get.
  static Json order_event(const Json& report);
  void settings(const Json& message);

  // What scripts ask.
  Outcome register_chunk(const Client& client, const Json& request);
  Result<Json> register_rule(const Client& client, const Json& request);  ///< of a job's script
  Result<Json> switch_off(const Client& client, std::int64_t rule);
  /// Ends a job's script, and its rules. So it stays for new consoles and starts, until --script names it
  /// again.
  Result<Json> stop_job(const Client& client, const std::string& name);
  /// Whether any rule or job lives, and has to know what happens as it happens.
  bool follows() const;
  Json rules() const;
  Json jobs() const;

  // The loop.
  std::vector<LuaSession*> processes();
  std::optional<Clock::time_point> deadline() const;
  void on_time(Clock::time_point now);

  /// The run is at its end: on("stop") runs, and what a job has printed is kept. True while something still
  /// runs.
  bool ending();
  void end(const Error& error);

 private:
  /// The source of a chunk that registered rules.
  struct Chunk {
    std::int64_t id = 0;
    std::string code, name, user, session;
    Role role = Role::view;
    Json specs = Json::array();  ///< as the session registered them
    Outcome outcome;             ///< set: a new one, and somebody waits
    int failures = 0;
  };
  /// A Lua process that runs without a client.
  struct Actor {
    explicit Actor(std::uint64_t id) : client(id, Connection(Fd(), 1)) {}
    Client client;    ///< its orders come from; its connection is none
    std::string job;  ///< name; empty: the process of the run's rules
    Json script;      ///< of a job: file, arguments
    std::string state =
        "running";  ///< "rules" once its script has ended and left some; "done", "failed", "stopped"
    std::string error;
    bool over() const { return state == "failed" || state == "stopped"; }
    std::deque<Firing> queue;
    std::optional<Firing> firing;           ///< in the process
    std::deque<std::int64_t> unregistered;  ///< chunks that the process hasn't run yet
    std::optional<std::int64_t> registering;
    std::deque<Clock::time_point> losses;  ///< of its process, the latest
    Clock::time_point start_at{};
    int restarts = 0;  ///< of a job whose process was killed
    bool script_sent = false;
    bool resumed = false;
    bool begins = false;        ///< this console is the first one of this start of the run that has it
    std::uint64_t printed = 0;  ///< bytes in its log
    int lines_this_second = 0;
    std::uint64_t lines_left_out = 0;
    Clock::time_point second{};
  };

  // automation.cpp: what is due, and running it
  void fire(std::vector<Firing> firings, std::uint64_t hold = 0);
  void queue(Actor& actor, Firing firing, bool first);
  void pump(Actor& actor);
  bool start(Actor& actor);
  void send_next(Actor& actor);
  void ended(Actor& actor, const Json& message);
  void handler_ended(Actor& actor, const Json& message);
  void retry_or_fail(Actor& actor, Firing firing, const Json& message);
  void failed(Rule& rule, const std::string& error, std::int64_t step);
  void switch_off(Rule& rule, const std::string& why);
  void act(const std::string& action, const Json& arguments);
  void release(std::uint64_t hold, std::int64_t rule);
  void tell_sync();
  void publish(const std::string& topic, const Json& data);
  void warn(const std::string& text, const Json& more = Json::object());
  Actor& actor_of(const Rule& rule);
  Role role_of_registering(const Actor& actor) const;
  std::vector<Actor*> actors();

  // automation_chunks.cpp: registering, and what is kept
  void registered(Actor& actor, const Json& message);
  void take_rules(Chunk& chunk, const Json& specs);
  void registration_failed(Chunk& chunk, const std::string& error);
  void retry_registrations();
  void load(const Json& reports);
  void settle(Rule& rule, const Json& reports);
  void save(bool durable);
  void forget_dead_chunks();

  // automation_jobs.cpp
  void load_jobs();
  void start_script(Actor& actor);
  void keep_state(const Actor& actor);
  void switch_off_rules(const Actor& job, const std::string& why);
  void script_ended(Actor& actor, const Json& message);
  bool restart_script(Actor& actor, const std::string& why);
  void look_after(Actor& actor);
  void job_output(Actor& actor, const Json& message);
  std::string policy(const Rule& rule) const;

  std::filesystem::path directory_;
  const Limits& limits_;
  Ports ports_;
  RuleTable table_;
  std::list<Chunk> chunks_;
  Actor rules_actor_;
  std::list<Actor> jobs_;
  Client own_;                                             ///< its own orders: a stop after an error
  std::map<std::uint64_t, std::set<std::int64_t>> holds_;  ///< rules that training waits for
  Json kept_jobs_ = Json::object();  ///< of rules.json: {name: {"started", "given", "state"}}
  std::int64_t given_ = 0;           ///< how often job scripts were named on a command line
  std::string started_;              ///< this start of the run
  std::string begun_;                ///< the start whose on("start") has run
  std::int64_t left_ = 0;            ///< step that ckpt.load went back from, to this start
  std::int64_t next_chunk_ = 1;
  std::uint64_t last_handle_ = 0;
  double step_ms_ = 0;
  std::string run_state_;
  bool begun_here_ = false;
  bool placed_ = false;  ///< the first step of this start is known
  bool unattended_ = false;
  bool new_start_ = false;
  bool stopped_ = false;   ///< on("stop") has been fired
  bool stopping_ = false;  ///< a stop of its own is on its way
  bool dirty_ = false;
  bool forget_ = false;  ///< rules have ended: their chunks may go, once nobody holds a reference
  Json told_sync_ = Json::object();
  Clock::time_point now_{};
};

}  // namespace footplate::host
