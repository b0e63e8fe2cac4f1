#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <string>

#include "protocol/messages/link_messages.h"
#include "protocol/schema.h"
#include "runtime/base/clock.h"
#include "runtime/base/times.h"
#include "runtime/orders/agreed_orders.h"
#include "runtime/orders/end_barrier.h"
#include "runtime/orders/forecast.h"
#include "runtime/orders/open_round.h"
#include "runtime/orders/order_reports.h"
#include "runtime/orders/own_stop.h"
#include "runtime/orders/state_hashes.h"
#include "runtime/watch/messages.h"
#include "runtime/watch/report.h"
#include "runtime/watch/status_tracker.h"

namespace footplate {

/// Rank 0's side of the order protocol (messages.h): takes orders, agrees on each with every rank (its own is
/// reached like the others), and reports what becomes of them. One order is open at a time (OpenRound);
/// between its commit and its step the next may be agreed on (AgreedOrders). A state machine: it is told what
/// arrives and what time it is, so tests drive it without threads. Control thread. More than 30 methods: one
/// for each request, message and moment of the protocol.
class Coordinator {
 public:
  using Clock = SteadyClock;
  struct Parts {
    const Schema& schema;
    StatusTracker& status;
    int world_size = 1;
    std::function<void(const message::ToRanks& message)> send_all;
    std::function<void(Report report)> report;
    ControlTimes times;
    std::uint64_t first_order_id = 1;
  };

  explicit Coordinator(Parts parts);

  void submit(SubmitOrder submitted, Clock::time_point now);
  /// Takes an order back.
  void withdraw(const WithdrawOrder& request, Clock::time_point now);
  /// Gives up a call that runs, or is about to.
  void cancel(std::uint64_t order, std::size_t call);
  void cancel_evaluation(std::int64_t step);
  /// Stops the run by an order of its own, and again where that is aborted. The first call counts.
  void stop(const std::string& reason, bool resumable, Clock::time_point now, bool save = true);

  /// An order that the run gives itself; it gets its number here, and nobody can withdraw it. The number; 0:
  /// not taken, as the run is ending or too many wait.
  std::uint64_t submit_own(Order order, Clock::time_point now);

  /// An order that every rank has committed by itself before the start. It has its number.
  void take_over(const Committed& committed);

  /// A rank is lost: nothing is opened, sent or counted until go_on(). Orders that come wait.
  void suspend() { suspended_ = true; }
  /// With the ranks that are left, which have heard of so many commits and confirm again what they have
  /// applied of late. The order that was open is opened again.
  void go_on(int world_size, std::uint64_t commits, Clock::time_point now);
  /// Before go_on(), where they go back from step `left` to a checkpoint of step `to`.
  void go_back(std::int64_t left, std::int64_t to) { agreed_.go_back(left, to); }
  /// Before go_on(), on a rank that rank 0's work has come to: an order that the others know to be agreed.
  void inherit(const Committed& committed);
  /// Before go_on(), too: the largest numbers that anybody has seen.
  void continue_from(std::uint64_t ticket, std::uint64_t order) {
    next_ticket_ = std::max(next_ticket_, ticket + 1);
    next_id_ = std::max(next_id_, order + 1);
  }

  void handle(int source, const message::ToRankZero& message, Clock::time_point now);
  void tick(Clock::time_point now);
  /// When the next tick has something to do.
  Clock::time_point next_tick() const;

  bool awaiting_outcome() const { return open_.has_value(); }
  bool ended() const { return ended_; }
  /// Reports of orders without an outcome, as in `status`. `order_bytes`: also their `order`, up to so many
  /// bytes of them; of the rest only session and user.
  std::vector<OrderReport> open_orders(std::size_t order_bytes = 0) const;
  /// The last final order reports, oldest first.
  const std::deque<OrderReports::Final>& final_reports() const { return reports_.final_ones(); }

 private:
  std::optional<Error> refusal(SubmitOrder& submitted) const;
  /// The number is given by now.
  void enqueue(OrderEntry entry, bool in_front, Clock::time_point now);
  void give_stop(Clock::time_point now);
  void withdraw_agreed(const AgreedOrder& agreed, Clock::time_point now);

  void open_next(Clock::time_point now);
  void on_prepared(int source, const message::Prepared& prepared, Clock::time_point now);
  void on_fenced(int source, const message::Fenced& fenced, Clock::time_point now);
  void agree(Clock::time_point now);
  void agree_withdrawal(std::int64_t step);
  void close_open(OrderState state, const std::string& error, Clock::time_point now);

  void conclude(const AgreedOrder& agreed);
  void on_call(const CallReport& report);
  void on_hash(int source, const message::Hash& hash);
  void finish_if_all_at_end();
  void report_waiting(Clock::time_point now);
  void send_all(const message::ToRanks& message) { parts_.send_all(message); }

  Parts parts_;
  StateHashes hashes_;
  std::uint64_t next_id_;
  std::uint64_t next_ticket_ = 1;
  std::deque<OrderEntry> queue_;
  std::optional<OpenRound> open_;
  AgreedOrders agreed_;
  OrderReports reports_;
  EndBarrier end_;
  OwnStop stop_;
  bool ended_ = false;
  bool suspended_ = false;
};

}  // namespace footplate
