#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "protocol/settings.h"
#include "runtime/base/clock.h"
#include "runtime/comm/message_channel.h"
#include "runtime/comm/world.h"
#include "runtime/orders/coordinator.h"
#include "runtime/orders/gate.h"

namespace footplate {

/// How many ranks the run has to have, and the number that the next one gets. Every rank knows it: any may
/// come to be rank 0.
struct RankNumbers {
  int wanted = 1;  ///< ranks, as the run was started with
  int next = 1;    ///< among the origins (Membership)
};

/// Rank 0: as long as ranks are missing and comm.replace says so, starts processes in their place, one after
/// the other beside training, and orders that they are let in at an agreed step. Control thread.
class Replacement {
 public:
  using Clock = SteadyClock;
  struct Parts {
    World* world = nullptr;  ///< null: nobody can join
    const MessageChannel& channel;
    const Gate& gate;
    Coordinator& coordinator;
    RankNumbers& numbers;
    std::string start;  ///< of the run: whom the order is for
    std::string host;   ///< of this rank, and of the processes that it starts
    std::function<void(EventData event)> report;
  };

  explicit Replacement(Parts parts) : parts_(std::move(parts)) {}

  void follow(const Settings& settings) { wanted_ = settings.boolean("comm.replace"); }
  void tick(Clock::time_point now);
  // Every report.
  void note(const OrderReport& report);
  void note(const CallReport& report);
  /// The order is over, or lost with the world: another one may be given.
  void forget_order() { order_ = 0; }
  /// The process is in.
  void succeeded() { failures_ = refusals_ = 0; }

 private:
  void invite(int missing, Clock::time_point now);
  void order_admission(Clock::time_point now);
  void try_later(Clock::time_point now);

  Parts parts_;
  bool wanted_ = false;
  std::uint64_t order_ = 0;  ///< under way; 0: none
  bool refused_ = false;     ///< the last order was: the next one comes after a pause
  int failures_ = 0;         ///< of processes, in a row
  int refusals_ = 0;         ///< of orders, since a process has come in
  Clock::time_point next_try_{}, next_order_{};
};

}  // namespace footplate
