#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <variant>
#include <vector>

#include "protocol/mutex.h"
#include "runtime/base/condition.h"
#include "runtime/base/progress.h"
#include "runtime/orders/forecast.h"
#include "runtime/orders/steerable.h"
#include "runtime/orders/step_gate.h"

namespace footplate {

/// What the training thread tells the control thread.
struct OrderApplied {
  std::uint64_t order = 0;
  std::int64_t step = 0;
  std::string digest;
  std::vector<Moved> moved;
  std::optional<Error> error;       ///< it had become impossible; nothing changed, on any rank
  std::optional<double> renewed_s;  ///< communicators were made anew for it, in so many seconds
};
struct CallMoved {
  std::uint64_t order = 0;
  std::size_t call = 0;
  std::string action;
  std::string state;  ///< running, done, failed, cancelled
  Json result;
  std::string error;
};
struct ReachedEnd {
  std::int64_t step = 0;
  std::uint64_t commits = 0;  ///< how many commits this rank had heard of by then
};
struct StateHash {
  std::int64_t step = 0;
  std::uint64_t hash = 0;
};
struct Published {
  std::string topic;
  Json data;
  std::chrono::system_clock::time_point time;
  std::uint64_t hold = 0;  ///< training waits for the release of this
};
struct Arrived {
  std::uint64_t ticket = 0;  ///< 1, 2, 3, … the same on all ranks
  std::string what;
  std::chrono::milliseconds within{0};
};
/// What footplate itself orders.
struct Proposed {
  Order order;
};
using GateEvent = std::variant<OrderApplied, CallMoved, ReachedEnd, StateHash, Published, Arrived, Proposed>;

/// Where the training thread stands still.
enum class Held { no, fence, pause, end, rule, lost };

/// Where the training thread waits for those who are left.
struct RecoveryState {
  std::int64_t step = 0;  ///< completed; -1: this rank's state is undefined
  bool paused = false;
  bool finished = false;
  std::optional<std::string> save;  ///< the tag of one that was interrupted
  std::uint64_t commits = 0;
  std::uint64_t begun = 0;    ///< of the orders applied, the number of the last one whose calls were begun
  std::uint64_t refused = 0;  ///< and of the last one that was refused as it was applied; 0: none
  std::string refusal = {};
};

/// The two threads of a rank meet here: the training thread at the top of every step, the control
/// thread with fences, commits and the end. docs/architecture.md, "One order, all ranks", tells why no
/// rank can pass the step of an order.
class Gate final : public StepGate {
 public:
  /// `wake` ends the control thread's sleep; any thread.
  Gate(const Schema& schema, Settings settings, Progress& progress, std::function<void()> wake,
       Json store = Json::object());
  /// Before the first enter().
  void set_steerable(Steerable& steerable) { steerable_ = &steerable; }
  /// Before the first enter(): what lost() answers.
  void set_recoverable(bool recoverable) { recoverable_ = recoverable; }

  // The training thread.
  Verdict enter(std::int64_t step) override;
  Ending ending() const override;
  const Settings& settings() const override { return settings_; }
  std::uint64_t last_applied() const override { return last_applied_; }
  Json store() const override;
  Json orders_ahead() const override;
  bool abandon() const override { return abandon_.load(std::memory_order_relaxed); }
  void report_state_hash(std::int64_t step, std::uint64_t hash) override;
  Result<void> meet(const std::string& what, std::chrono::milliseconds at_most) override;
  void pause() override;
  bool lost(Interrupted what, const std::string& tag) override;
  std::string interruption() const override;
  void propose(const Order& order) override;
  void publish(const std::string& topic, Json data) override;  ///< any thread

  // The control thread.

  /// The first step that this rank hasn't begun, and from now on doesn't begin before commit(),
  /// withdraw() or release_fence(). Waits for nothing.
  std::int64_t propose_fence();
  void release_fence();
  /// Releases the fence, and has `committed` applied at its step.
  void commit(Committed committed);
  /// Releases the fence, and forgets a committed order whose step hasn't come.
  void withdraw(std::uint64_t order);
  bool is_pending(std::uint64_t order) const;
  /// Sets abandon() while that call runs.
  void cancel(std::uint64_t order, std::size_t call);
  /// Gives up the evaluation of the parameters after `step`, whoever asked for it.
  void cancel_evaluation(std::int64_t step);
  /// What became of a meeting; an error ends it for whoever comes later, too.
  void met(std::uint64_t ticket, const std::string& error);
  /// All ranks are at the end and no order is open: enter() returns `end`.
  void finish();

  /// Before the first enter(): orders that let somebody in count where they name this start of the run.
  void set_start(std::string start) { start_ = std::move(start); }
  /// Before the first enter(), in a process that joins a run: the number of orders applied so far, and the id
  /// of the last one. The training thread stands until resumed; its state is nobody's.
  void join(std::uint64_t applied, std::uint64_t last_applied);
  /// While the training thread stands: what join() wants.
  std::pair<std::uint64_t, std::uint64_t> applied() const;

  // After a loss, in this order (recovery.h).

  /// What interruption() says, until resumed.
  void set_interruption(std::string why);
  /// A rank is lost: the training thread is held as soon as it comes here, and meetings end.
  void hold_for_recovery();
  /// Once it stands here.
  std::optional<RecoveryState> recovery_state() const;
  /// It goes on as `rejoin` says. No fence and no meeting is open any more; this rank has heard of so many
  /// commits; `paused` and `finished` as for the source. Calls of the orders up to number `begun` are over:
  /// another rank has begun them, and they came to nothing by the loss.
  void resume(const Rejoin& rejoin, std::uint64_t commits, std::uint64_t begun, bool paused, bool finished);
  /// Nobody can go on: enter() throws std::runtime_error with `why`, now or when it is called.
  void give_up(const std::string& why);

  /// Rank 0: after an event of one of these topics, enter() waits for its release, at most so many
  /// milliseconds. Nothing waits where there are none. Releases what is held for a topic that is no longer
  /// there.
  void set_sync(const Json& budgets);
  void release(std::uint64_t hold);

  Forecast forecast() const;
  Settings settings_copy() const;
  Held held() const;
  /// What happened since the last drain, in order.
  std::vector<GateEvent> drain();
  /// Whether somebody follows the metrics: if not, they wait for the control thread's next turn.
  void set_followed(bool followed) { followed_.store(followed, std::memory_order_relaxed); }
  /// Whether events come one upon the other: drain again soon, publish() doesn't wake for each.
  bool streaming() const { return streaming_.load(std::memory_order_relaxed); }

  std::chrono::nanoseconds time_at_fences() const;
  std::uint64_t stops_at_fences() const;

 private:
  static constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();
  using Lock = MutexLock;
  using CallKey = std::pair<std::uint64_t, std::size_t>;

  Verdict enter_slowly(std::int64_t step);
  bool at_end(std::int64_t step) const;
  std::optional<Committed> take_due(std::int64_t step);
  void apply(MutexLock& lock, std::int64_t step, const Committed& due);
  bool change_settings(MutexLock& lock, const Order& order, std::int64_t step, OrderApplied& outcome);
  bool renew(MutexLock& lock, const Settings& after, std::int64_t step, OrderApplied& outcome);
  void put_back(const Committed& order);
  void run_calls(MutexLock& lock, std::int64_t step, const Order& order);
  void run_own(const Order& order, CallMoved& moved, std::int64_t step);
  void give_up_load();
  void end_to_load(const Order& order, const CallMoved& moved);
  void run_admit(const Order& order, CallMoved& moved, std::int64_t step);
  void run_foreign(MutexLock& lock, const Order& order, CallMoved& moved, std::int64_t step);
  void stand_still(MutexLock& lock, Held why, std::int64_t step);
  void announce_end(std::int64_t step);
  void wait_for_release(MutexLock& lock);
  std::uint64_t begin_hold(const std::string& topic);
  void look_ahead();
  void look_for_abandon();
  void rejoin(MutexLock& lock, std::int64_t& step);
  void conclude();
  void push(GateEvent event);

  const Schema& schema_;
  Progress& progress_;
  Steerable* steerable_ = nullptr;
  std::function<void()> wake_;

  /// The smallest step at which enter() has anything to do: the fence, an order's, the end.
  std::atomic<std::int64_t> interesting_{0};
  std::atomic<bool> abandon_{false};
  std::atomic<bool> streaming_{false};
  SteadyClock::time_point last_urgent_;  ///< guarded by mutex_: a drain that found such events
  std::atomic<bool> followed_{false};
  std::uint64_t last_applied_ = 0;  ///< training thread

  std::atomic<bool> sync_{false};  ///< some topic has a budget
  std::string start_;              ///< written before the first enter()

  mutable Mutex mutex_;  ///< guards all below
  Json store_ = Json::object();
  Json sync_budgets_ = Json::object();
  struct Hold {
    std::uint64_t id = 0;
    std::string topic;
    SteadyClock::time_point until;
  };
  std::optional<Hold> hold_;  ///< enter() waits for its release
  std::uint64_t last_hold_ = 0;
  bool said_late_ = false;
  Condition outcome_;
  Settings settings_;               ///< written by the training thread, which alone reads it without the lock
  std::vector<Committed> pending_;  ///< by step, then as committed
  std::int64_t fence_ = kNever;
  std::uint64_t commits_ = 0;
  Held held_ = Held::no;
  std::int64_t held_at_ = 0;
  bool paused_ = false;
  bool stopped_ = false;
  bool finished_ = false;
  std::uint64_t applied_ = 0;     ///< orders so far: the same ones in the same order on all ranks
  std::uint64_t begun_ = 0;       ///< number among those of the last one whose calls were begun here
  std::uint64_t calls_over_ = 0;  ///< calls of those up to this number aren't begun any more
  std::uint64_t refused_ = 0;     ///< number of the last one refused as it was applied, here or elsewhere
  std::string refusal_;           ///< why
  bool recoverable_ = false;
  bool lost_ = false;                      ///< stand here until resumed
  std::optional<std::string> save_again_;  ///< the tag of a save that the loss interrupted
  std::string given_up_;                   ///< why; empty: not
  std::string interruption_;               ///< likewise
  bool whole_ = true;                      ///< this rank's state is that of one step
  std::optional<Rejoin> rejoining_;        ///< resumed, and not gone on yet
  Ending ending_;
  std::optional<std::uint64_t> announced_;  ///< number of commits with which the end was announced
  std::optional<CallKey> running_;
  std::set<CallKey> cancelled_;
  std::vector<GateEvent> events_;
  std::uint64_t last_meeting_ = 0;            ///< this rank has come to
  std::map<std::uint64_t, std::string> met_;  ///< decided and not come to yet: the error, or empty
  std::uint64_t published_ = 0;               ///< among events_
  std::uint64_t urgent_ = 0;                  ///< among those
  std::uint64_t dropped_ = 0;                 ///< published ones that found the queue full
  std::chrono::nanoseconds time_at_fences_{0};
  std::uint64_t stops_at_fences_ = 0;
};

}  // namespace footplate
