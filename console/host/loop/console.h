#pragma once

#include <memory>
#include <string>
#include <vector>

#include "console/host/api/operation.h"
#include "console/host/automation/automation.h"
#include "console/host/clients/clients.h"
#include "console/host/clients/sessions.h"
#include "console/host/loop/rank_messages.h"
#include "console/host/loop/stuck_rank.h"
#include "console/host/orders/order_desk.h"
#include "console/host/run/host_state.h"
#include "console/host/run/rank_questions.h"

namespace footplate::host {

/// The event loop: one thread around poll(), and the parts that it calls. docs/protocol.md has the messages.
class Console {
 public:
  explicit Console(ConsoleOptions options);

  /// Until rank 0 is gone. Returns the program's exit code.
  int run();

 private:
  using Clock = HostState::Clock;

  void turn();
  void serve(const std::vector<pollfd>& ready, const std::vector<Client*>& clients);
  int timeout_ms() const;
  void on_rank(short revents);
  void on_signal();
  void leave_if_due();
  void hear(const std::string& line);
  void on_time();
  void follow_if_needed();
  void say_bye();
  void finish_scripts(const Error& error);
  void flush_clients();
  Automation::Ports automation_ports();

  HostState state_;
  Reaper reaper_;
  RankQuestions questions_;
  Clients clients_;
  OrderDesk orders_;
  Sessions sessions_;
  Automation automation_;
  Api api_;
  RankMessages rank_messages_;
  StuckRank stuck_rank_;
  Clock::time_point next_look_;  ///< at the socket's file, the journal's backlog and ended children
  bool running_ = true;
  int exit_code_ = 0;
  std::optional<Clock::time_point> leaves_at_;  ///< for a signal, unless the run ends by then
  bool by_signal_ = false;
};

}  // namespace footplate::host
