#pragma once

#include <algorithm>
#include <atomic>
#include <deque>
#include <functional>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "protocol/iso_time.h"
#include "protocol/mutex.h"
#include "runtime/base/clock.h"
#include "runtime/base/condition.h"
#include "runtime/base/deadline_timer.h"
#include "runtime/base/thread.h"
#include "runtime/comm/watchdog.h"
#include "runtime/console_link/console_link.h"
#include "runtime/control/control.h"
#include "runtime/control/recovery.h"
#include "runtime/orders/coordinator.h"
#include "runtime/orders/gate.h"
#include "runtime/orders/participant.h"
#include "runtime/watch/advice.h"
#include "runtime/watch/collective_timeouts.h"
#include "runtime/watch/collective_watch.h"
#include "runtime/watch/messages.h"
#include "runtime/watch/rank_barrier.h"
#include "runtime/watch/run_status.h"
#include "runtime/watch/stack_inquiries.h"

namespace footplate {

/// Everything of a rank's control, used by its thread alone but for what is marked.
class Control::Impl {
 public:
  using Clock = SteadyClock;
  using milliseconds = std::chrono::milliseconds;
  using WallTime = std::chrono::system_clock::time_point;

  explicit Impl(ControlOptions options)
      : options_(std::move(options)),
        gate_(
            options_.schema, options_.settings, *options_.progress, [this] { options_.channel->wake(); },
            options_.store) {
    gate_.set_recoverable(options_.world != nullptr);
    gate_.set_start(options_.run.started);
  }

  ~Impl() {
    watchdog_.reset();
    quit_ = true;
    join();
  }

  /// Every rank: settings that control itself acts by.
  void follow_limits();
  void start();
  void finish(const Json& result);  // the training thread

  void settle(milliseconds at_most);  // the training thread

  void request_stop(const char* reason, bool resumable) noexcept;  // any thread, signal handlers

  void take(const Json& line);  // any thread

  Json status() const;  // any thread

  void training_ended() { training_ended_ = true; }  // the training thread

  Gate& gate() { return gate_; }
  void set_steerable(Steerable& steerable);

 private:
  void join();
  /// As rank 0 starts, or once its work has come to this rank.
  void start_rank_zero(std::uint64_t first_order_id);
  /// What counts ranks or numbers of collectives begins anew with every world.
  void watch_collectives();
  void send_all(const Json& message);

  // --- a rank was lost, or is stuck (control_recovery.cpp) ---

  /// All who are left come here, each as it notices. Nothing in it waits for a training thread.
  void recover(Clock::time_point now);
  /// A rank that is stopped, or the MPI library, may hold it up for ever: this thread with it.
  Result<void> in_time(const std::function<Result<void>()>& change);
  /// This rank's work in the world of now, until all stand.
  void world_changed(const Membership& before, Clock::time_point now);
  void give_up(const std::string& why);

  void enforce_hard_limit(Clock::time_point now);
  void kill(const RunStatus::Stuck& stuck, const std::string& why);
  void drop(int rank, const std::string& user, Clock::time_point now);
  /// The ranks' states differ: what guard.on_mismatch says.
  void on_difference(const Json& differing, Clock::time_point now);
  void note_repair(const std::string& topic, const Json& call);
  void tick_recovery();
  /// Rank 0.
  void on_standing(int source, const Json& message, Clock::time_point now);
  void go_on(const Json& verdict, Clock::time_point now);
  /// This rank leads since rank 0 was lost: what is agreed on and not confirmed by all, or not recorded.
  void inherit_orders(std::uint64_t first_unrecorded);
  void on_rejoin(const Json& verdict);

  // --- a collective hangs, and all ranks live (control_timeouts.cpp) ---

  void on_remedy(const Json& message);
  void tick_timeouts(Clock::time_point now);
  void watch_recovery(Clock::time_point now);

  // --- somebody takes the place of a lost one (control_replacement.cpp) ---

  /// Rank 0: as long as ranks are missing and comm.replace says so, one after the other.
  void look_for_replacement(Clock::time_point now);
  void order_admission(Clock::time_point now);
  /// What became of the order that lets it in.
  void note_admission(const std::string& state);
  /// All ranks, once that order has brought their training threads to a halt at one step.
  void admit(Clock::time_point now);
  /// What the joining rank has to know, by rank 0.
  Json welcome() const;
  /// The joining rank's start.
  void join_run(const Json& welcome);

  // --- the loop (control.cpp) ---

  /// Messages handled before the console and the clock are looked at again.
  static constexpr int kMessagesATurn = 1000;

  void loop();
  /// Messages before the clock: after this process was stopped for a while, what the others sent
  /// meanwhile has to count before anybody is called silent or late.
  void turn(Clock::time_point now);
  void handle_messages(Clock::time_point now, int most = kMessagesATurn);
  /// Where nobody looks, a status now and then is enough: making and reading one costs more than all else
  /// that happens while the run is left alone.
  void on_own_beat(const Json& beat);
  void handle_taken();
  void found(const Watchdog::Finding& finding);  // the watchdog's thread

  void handle_findings();
  void handle_gate();
  /// What was published after handle_gate() and before this may still be queued: another look.
  void handle_settle();
  void handle(GateEvent& event);
  void complain(const std::exception& error);
  /// Every rank, for its own records: what it applied, as it saw it.
  void record(const OrderApplied& applied);
  void handle_stop_request();
  void tick_rank_zero(Clock::time_point now);
  milliseconds sleep() const;
  void end_console();

  // --- the console and the records (control_console.cpp) ---

  void report(const std::string& topic, Json data, WallTime time, std::uint64_t hold = 0);
  void on_console(const Json& line);
  void follow(bool on);
  /// What rules and jobs have to say, for everyone who listens, and for the records.
  void publish(const Json& line);
  void cancel(const Json& line);
  Json kept_at_start() const;
  Json hello();
  void keep_for_next_console(const Json& event);
  void follow_settings(const Json& changed);
  void renew_status();

  ControlOptions options_;
  Gate gate_;
  Steerable* steerable_ = nullptr;
  std::optional<Participant> participant_;
  // Rank 0.
  std::optional<RunStatus> run_status_;
  std::optional<Coordinator> coordinator_;
  std::optional<RankBarrier> rank_barrier_;
  std::optional<Advice> advice_;
  std::deque<Order> proposed_;  ///< by the training thread, not yet given
  CollectiveTimeouts::Memory timeouts_so_far_;
  std::optional<CollectiveTimeouts> collective_timeouts_;
  std::optional<CollectiveWatch> collectives_;
  std::optional<StackInquiries> stacks_;
  std::optional<ConsoleLink> link_;
  Json untold_ = Json::array();  ///< `rank` events that came while there was no console
  std::chrono::duration<double> hard_limit_{0};
  std::set<int> killed_;  ///< process ids
  std::string on_mismatch_ = "warn";
  std::vector<Json> differing_;       ///< found since the last turn
  std::uint64_t repair_ = 0;          ///< the order under way
  std::int64_t repaired_before_ = 0;  ///< hashes of earlier steps are of before the repair
  // After a loss.
  std::string on_loss_ = "rebuild";
  bool recovering_ = false;     ///< until all have agreed how to go on
  bool told_standing_ = false;  ///< to the rank 0 of this generation
  Clock::time_point recovering_since_{};
  Clock::time_point standing_since_{};  ///< the training threads are awaited
  bool recovery_told_ = false;          ///< whom it waits for
  Membership whole_world_;              ///< before the loss
  std::string remedy_;                  ///< why all are about to rebuild, or to end; empty: they aren't
  std::string remedied_;                ///< why they have
  bool ends_by_remedy_ = false;
  bool rebuild_due_ = false;          ///< rank 0: all have been told
  std::optional<Recovery> recovery_;  ///< rank 0
  std::optional<std::uint64_t>
      first_unrecorded_;  ///< a new rank 0: orders from here on aren't in the journal
  // Growing again.
  bool replace_ = false;
  int wanted_ = 1;                ///< ranks, as the run was started with
  int next_number_ = 1;           ///< among the origins
  bool joining_ = false;          ///< this process, until it is level
  bool admission_due_ = false;    ///< the order is applied here
  std::uint64_t admission_ = 0;   ///< rank 0: the order under way
  int failures_ = 0;              ///< rank 0: in a row
  Clock::time_point next_try_{};  ///< rank 0
  std::int64_t steps_ = 0;
  Clock::duration time_limit_{0};
  bool stop_told_ = false;
  bool followed_ = false;  ///< the console has somebody who looks
  bool asked_ = false;     ///< the console wants a status now
  int beats_untold_ = 0;
  Json result_;  ///< written before quit_ is set, read after

  std::atomic<bool> quit_{false};
  std::atomic<bool> training_ended_{false};
  std::atomic<const char*> stop_reason_{nullptr};
  std::atomic<bool> stop_resumable_{false};
  Mutex settle_mutex_;
  Condition settled_;
  bool settle_wanted_ = false;  ///< guarded by settle_mutex_
  Mutex taken_mutex_;
  std::vector<Json> taken_;
  std::vector<Watchdog::Finding> findings_;  ///< guarded by taken_mutex_
  mutable Mutex status_mutex_;
  Json status_;
  Thread thread_;
  std::optional<Watchdog> watchdog_;
};

}  // namespace footplate
