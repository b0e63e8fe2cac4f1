#pragma once

#include <unistd.h>

#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "console/host/automation.h"
#include "console/host/client.h"
#include "console/host/journal.h"
#include "console/host/listener.h"
#include "console/host/order_book.h"
#include "console/host/run_view.h"
#include "console/host/session_limits.h"
#include "console/host/waits.h"
#include "protocol/order.h"

namespace footplate::host {

struct ConsoleOptions {
  std::filesystem::path run_directory;
  std::filesystem::path lua_program;  ///< footplate-lua
  int rank_fd = 3;                    ///< the socketpair to rank 0
  int signal_fd = -1;                 ///< becomes readable when the console has to end; -1: none
  Role role = Role::admin;            ///< what this user's clients may do
  Limits limits;
};

/// The whole console: one thread around poll(). docs/protocol.md has the messages.
class Console {
 public:
  using Clock = std::chrono::steady_clock;

  explicit Console(ConsoleOptions options);

  /// Until rank 0 is gone. Returns the program's exit code.
  int run();

 private:
  /// Whom a request comes from and where its answer goes.
  struct Request {
    Client& client;
    const Json& message;
    Answer answer;
  };
  struct Operation;
  static const Operation kClientOperations[];
  static const Operation kLuaOperations[];

  // console.cpp: the loop
  void turn();
  int timeout_ms() const;
  void on_rank(short revents);
  void on_listener();
  void on_client(Client& client, short revents);
  void on_time();
  void deliver_events(Client& client);
  void drop_gone();
  void say_bye();

  // rank_messages.cpp: what rank 0 says
  void rank_message(const Json& message);
  void begin(const Json& hello);
  void stacks(const Json& report);
  void listen();
  const OrderBook::Entry& record(const Json& report);
  void order_report(const Json& report);
  void warn_if_late(const Json& report);
  void event(const std::string& topic, const Json& data);

  // requests.cpp: what clients and scripts ask
  void client_line(Client& client, const std::string& line);
  void dispatch(const Operation* table, Request request);
  void op_answer(Request& request);
  void op_attach(Request& request);
  void op_bye(Request& request);
  void op_call(Request& request);
  void op_cancel(Request& request);
  void op_complete(Request& request);
  void op_eval(Request& request);
  void op_get(Request& request);
  void op_pending(Request& request);
  void op_help(Request& request);
  void op_interrupt(Request& request);
  void op_jobs(Request& request);
  void op_job_off(Request& request);
  void op_journal(Request& request);
  void op_metrics(Request& request);
  void op_order(Request& request);
  void op_orders(Request& request);
  void op_ping(Request& request);
  void op_role(Request& request);
  void op_rule(Request& request);
  void op_rule_off(Request& request);
  void op_rules(Request& request);
  void op_schema(Request& request);
  void op_set(Request& request);
  void op_status(Request& request);
  void op_comm_report(Request& request);
  void op_stacks(Request& request);
  void op_drop(Request& request);
  bool knows_rank(Request& request, int rank);
  Json status_now() const;
  void op_store(Request& request);
  void op_subscribe(Request& request);
  void op_wait_answer(Request& request);
  void op_wait_call(Request& request);
  void op_wait_event(Request& request);
  void op_wait_lines(Request& request);
  std::optional<Result<Json>> failure_of_the_end() const;
  void op_wait_order(Request& request);
  void op_wait_rules(Request& request);
  void op_wait_seconds(Request& request);
  void op_wait_step(Request& request);
  void op_withdraw(Request& request);

  // attachments.cpp: people at a prompt
  void record_client(const Client& client, const char* state);

  // orders.cpp: orders on their way
  Result<std::string> submit(Client& client, Order order);  ///< returns its ref
  Result<void> allowed(const Client& client, const Order& order) const;
  void withdraw(const OrderBook::Entry& entry);
  enum class Until { now, committed, final };
  void wait_order(Request& request, std::uint64_t id, const std::string& ref, Until until,
                  std::optional<double> timeout_s);
  void wait_call(Client& client, std::uint64_t order, std::int64_t call, std::optional<double> timeout_s,
                 Answer answer, bool of_script = false);
  void tell_silence();
  void end_stuck_rank();
  void answer_with_outcome(Request& request, const std::string& ref, Until until, double timeout_s,
                           const Answer& answer);

  // sessions.cpp: the Lua of clients
  void next_eval(Client& client);
  Answer script_answer(Client& client, const char* type, const Json& id);
  Json lua_hello(const Client& client) const;
  Result<std::unique_ptr<LuaProcess>> fresh_process();
  void keep_spare();

  // requests.cpp: rank 0 tells more while somebody looks
  bool has_followers() const;
  void follow_if_needed();

  // scripts.cpp: rules, jobs and store
  Automation::Ports automation_ports();
  Json with_metrics(const std::string& topic, const Json& data) const;
  void happened(const std::string& event, const Json& data);
  void finish_scripts(const Error& error);
  std::vector<LuaSession*> running_chunks();

  void send(Client& client, const Json& message);
  void not_sent(Client& client, std::size_t bytes, const Json& id);
  void to_rank(const Json& message);
  std::optional<Clock::time_point> after(std::optional<double> seconds) const;

  ConsoleOptions options_;
  Connection rank_;
  Reaper reaper_;
  RunView view_;
  OrderBook book_;
  EventRing ring_;
  Waits waits_;
  std::optional<Listener> listener_;
  std::optional<Journal> journal_;
  std::vector<std::unique_ptr<Client>> clients_;
  Automation automation_;
  std::map<std::string, std::pair<std::uint64_t, Json>>
      happened_;                       ///< by event: how often so far, and the last one
  std::unique_ptr<LuaProcess> spare_;  ///< started ahead, so that a one-shot chunk needn't wait for it
  Clock::time_point spare_due_{};
  Clock::time_point now_{};  ///< of this turn
  const pid_t rank_pid_ = ::getppid();
  Clock::time_point last_look_{};     ///< a late one: this process was held up itself
  Clock::time_point silent_since_{};  ///< rank 0, as far as this process could hear
  Clock::time_point next_look_{};     ///< at the socket's file, the journal's backlog and ended children
  std::uint64_t last_client_ = 0;
  std::uint64_t last_ref_ = 0;
  std::string ref_prefix_;     ///< differs from that of an earlier console of this run
  bool following_ = false;     ///< rank 0 has been asked to tell everything as it happens
  bool silence_told_ = false;  ///< to those who wait for an order, since rank 0 was last heard
  bool running_ = true;
  int exit_code_ = 0;

  /// Rank 0 has been asked for stacks, and has answered once `report` isn't null.
  struct Stacks {
    Json report;
    Clock::time_point asked;
  };
  static constexpr int kAllRanks = -1;
  std::map<int, std::shared_ptr<Stacks>> stacks_;  ///< unanswered, by the rank asked for, or kAllRanks
};

struct Console::Operation {
  const char* name;
  void (Console::*run)(Request&);
  const char* fields =
      nullptr;  ///< of its requests, beside id and op, with spaces between; null: not checked
};

}  // namespace footplate::host
