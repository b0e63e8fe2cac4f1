#include "runtime/orders/gate.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

#include "protocol/mutex.h"
#include "runtime/schema/actions.h"

namespace footplate {
namespace {

/// Published events that the control thread hasn't fetched; more are dropped and counted.
constexpr std::uint64_t kMostPublished = 4096;
/// Events that come closer to each other than this are a stream.
constexpr std::chrono::milliseconds kStreamGap{250};

}  // namespace

Gate::Gate(const Schema& schema, Settings settings, Progress& progress, std::function<void()> wake,
           Json store)
    : schema_(schema),
      progress_(progress),
      wake_(std::move(wake)),
      store_(std::move(store)),
      settings_(std::move(settings)) {
  look_ahead();
}

StepGate::Verdict Gate::enter(std::int64_t step) {
  // Pairs with propose_fence: either this store is seen there, or the fence is seen here.
  progress_.at_step(step);
  if (step < interesting_.load(std::memory_order_seq_cst)) return Verdict::train;
  return enter_slowly(step);
}

StepGate::Verdict Gate::enter_slowly(std::int64_t step) {
  Lock lock(mutex_);
  if (hold_) wait_for_release(lock);
  for (;;) {
    if (lost_) {
      rejoin(lock, step);
    } else if (auto due = take_due(step)) {
      apply(lock, step, *due);
    } else if (fence_ <= step) {
      stand_still(lock, Held::fence, step);
    } else if (stopped_ || (at_end(step) && !paused_)) {
      if (finished_) return Verdict::end;
      announce_end(step);
      stand_still(lock, Held::end, step);
    } else if (paused_) {
      stand_still(lock, Held::pause, step);
    } else {
      return Verdict::train;
    }
  }
}

/// Until control has made a new world; then with the others there. Where another is lost meanwhile: again.
void Gate::rejoin(MutexLock& lock, std::int64_t& step) {
  progress_.enter(Phase::boundary);
  held_ = Held::lost;
  held_at_ = step;
  wake_();
  outcome_.wait(lock, [this] { return rejoining_.has_value() || !given_up_.empty(); });
  if (!given_up_.empty()) throw std::runtime_error(given_up_);
  held_ = Held::no;
  lost_ = false;
  look_for_abandon();
  const Rejoin now = *std::exchange(rejoining_, std::nullopt);
  if (now.behind) whole_ = false;
  progress_.at_step(now.step);  // as on the others, whose ledgers have the step of what follows
  lock.unlock();
  const auto level = steerable_->rejoin(now);
  lock.lock();
  if (!level && level.error().kind != ErrorKind::lost) throw std::runtime_error(level.error().message);
  if (!level) {
    lost_ = true;
  } else {
    whole_ = true;
    step = now.step;
    progress_.at_step(step);
  }
  look_ahead();
}

bool Gate::lost(Interrupted what, const std::string& tag) {
  MutexLock lock(mutex_);
  if (!recoverable_) return false;
  if (what == Interrupted::save) save_again_ = tag;
  whole_ = whole_ && what != Interrupted::state;
  lost_ = true;
  look_ahead();
  return true;
}

std::string Gate::interruption() const {
  MutexLock lock(mutex_);
  return interruption_;
}

void Gate::set_interruption(std::string why) {
  MutexLock lock(mutex_);
  interruption_ = std::move(why);
}

void Gate::hold_for_recovery() {
  MutexLock lock(mutex_);
  lost_ = true;
  rejoining_.reset();
  look_ahead();
  look_for_abandon();
  outcome_.notify_all();
}

std::optional<RecoveryState> Gate::recovery_state() const {
  MutexLock lock(mutex_);
  if (held_ != Held::lost || rejoining_) return std::nullopt;
  return RecoveryState{
      whole_ ? held_at_ : -1, paused_, finished_, save_again_, commits_, begun_, refused_, refusal_};
}

void Gate::resume(const Rejoin& rejoin, std::uint64_t commits, std::uint64_t begun, bool paused,
                  bool finished) {
  MutexLock lock(mutex_);
  calls_over_ = begun;
  refused_ = rejoin.refused;
  refusal_ = rejoin.refusal;
  fence_ = kNever;
  met_.clear();
  last_meeting_ = 0;
  announced_.reset();
  interruption_.clear();
  commits_ = commits;
  save_again_.reset();
  if (rejoin.behind) paused_ = paused;
  if (finished)
    conclude();
  else if (ending_.reason == kLoadEnding)
    give_up_load();
  rejoining_ = rejoin;
  look_ahead();
  look_for_abandon();
  outcome_.notify_all();
}

/// Not all may have heard that the checkpoint can be loaded.
void Gate::give_up_load() {
  stopped_ = false;
  ending_ = {};
}

void Gate::join(std::uint64_t applied, std::uint64_t last_applied) {
  MutexLock lock(mutex_);
  applied_ = applied;
  last_applied_ = last_applied;
  whole_ = false;
  lost_ = true;
  look_ahead();
}

std::pair<std::uint64_t, std::uint64_t> Gate::applied() const {
  MutexLock lock(mutex_);
  return {applied_, last_applied_};
}

void Gate::give_up(const std::string& why) {
  MutexLock lock(mutex_);
  given_up_ = why;
  lost_ = true;
  look_ahead();
  look_for_abandon();
  outcome_.notify_all();
}

bool Gate::at_end(std::int64_t step) const {
  return stopped_ || step >= settings_.integer("train.steps");
}

/// The next order to apply at the top of `step`. Where training is held, those without a target are
/// due whatever their step: every rank comes to the same state before it looks, so all do the same.
std::optional<Committed> Gate::take_due(std::int64_t step) {
  const bool standing = paused_ || at_end(step);
  const auto due = std::find_if(pending_.begin(), pending_.end(), [&](const Committed& committed) {
    return committed.step <= step || (standing && !committed.targeted);
  });
  if (due == pending_.end()) return std::nullopt;
  Committed taken = std::move(*due);
  pending_.erase(due);
  look_ahead();
  look_for_abandon();
  return taken;
}

/// Sleeps until the control thread has something new. The caller looks again at everything.
void Gate::stand_still(MutexLock& lock, Held why, std::int64_t step) {
  using Clock = SteadyClock;
  progress_.enter(why == Held::pause ? Phase::paused : why == Held::end ? Phase::ending : Phase::boundary);
  if (why != Held::fence) wake_();
  held_ = why;
  held_at_ = step;
  const auto began = Clock::now();
  outcome_.wait(lock);
  if (why == Held::fence) {
    time_at_fences_ += Clock::now() - began;
    ++stops_at_fences_;
  }
  held_ = Held::no;
  progress_.enter(Phase::boundary);
}

void Gate::announce_end(std::int64_t step) {
  if (announced_ == commits_) return;
  announced_ = commits_;
  push(ReachedEnd{step, commits_});
  wake_();
}

void Gate::look_ahead() {
  std::int64_t next = hold_ || paused_ || lost_ ? 0 : std::min(fence_, settings_.integer("train.steps"));
  if (!pending_.empty()) next = std::min(next, pending_.front().step);
  interesting_.store(next, std::memory_order_seq_cst);
}

/// A stop that is about to come, or the cancelling of what runs. A stop doesn't touch the calls before
/// it in its own order: that has left the list by then. One with a target lets what runs end.
void Gate::look_for_abandon() {
  const bool stop = std::any_of(pending_.begin(), pending_.end(), [](const Committed& committed) {
    const auto& calls = committed.order.calls;
    return !committed.targeted &&
           std::any_of(calls.begin(), calls.end(), [](const Call& call) { return ends_start(call.action); });
  });
  const bool cancelled = running_ && cancelled_.count(*running_) > 0;
  const bool missed = !met_.empty() && met_.rbegin()->first > last_meeting_;
  abandon_.store(stop || cancelled || missed || lost_, std::memory_order_relaxed);
}

Result<void> Gate::meet(const std::string& what, std::chrono::milliseconds at_most) {
  Lock lock(mutex_);
  const std::uint64_t ticket = ++last_meeting_;
  if (!met_.contains(ticket) && !lost_) {
    push(Arrived{ticket, what, at_most});
    wake_();
    outcome_.wait(lock, [&] { return met_.contains(ticket) || lost_; });
  }
  if (!met_.contains(ticket)) return fail(ErrorKind::lost, "a rank was lost before all had come to " + what);
  const std::string error = met_.extract(ticket).mapped();
  look_for_abandon();
  if (error.empty()) return {};
  return fail(ErrorKind::timed_out, error);
}

void Gate::met(std::uint64_t ticket, const std::string& error) {
  MutexLock lock(mutex_);
  met_[ticket] = error;
  look_for_abandon();
  outcome_.notify_all();
}

std::int64_t Gate::propose_fence() {
  MutexLock lock(mutex_);
  std::int64_t fence = 0;
  if (held_ == Held::pause || held_ == Held::end) {
    fence = fence_ = held_at_;
    look_ahead();
  } else {
    // Publish the fence, then read the step again: a training thread that passed it in between is seen.
    for (fence = progress_.step() + 1;; fence = progress_.step() + 1) {
      fence_ = fence;
      look_ahead();
      if (progress_.step() < fence) break;
    }
  }
  return fence;
}

void Gate::release_fence() {
  MutexLock lock(mutex_);
  fence_ = kNever;
  look_ahead();
  outcome_.notify_all();
}

void Gate::commit(Committed committed) {
  MutexLock lock(mutex_);
  // Behind those of the same step: the order of commits is the same on all ranks. Ids are not, where
  // the run's own stop overtook older orders in the queue and one rank has applied it already.
  const auto place = std::upper_bound(pending_.begin(), pending_.end(), committed,
                                      [](const Committed& a, const Committed& b) { return a.step < b.step; });
  pending_.insert(place, std::move(committed));
  ++commits_;
  fence_ = kNever;
  look_ahead();
  look_for_abandon();
  outcome_.notify_all();
}

void Gate::withdraw(std::uint64_t order) {
  MutexLock lock(mutex_);
  std::erase_if(pending_, [&](const Committed& committed) { return committed.order.id == order; });
  ++commits_;
  fence_ = kNever;
  look_ahead();
  look_for_abandon();
  outcome_.notify_all();
}

bool Gate::is_pending(std::uint64_t order) const {
  MutexLock lock(mutex_);
  return std::any_of(pending_.begin(), pending_.end(),
                     [&](const Committed& committed) { return committed.order.id == order; });
}

void Gate::cancel(std::uint64_t order, std::size_t call) {
  MutexLock lock(mutex_);
  const bool known = (running_ && running_->first == order) ||
                     std::any_of(pending_.begin(), pending_.end(),
                                 [&](const Committed& committed) { return committed.order.id == order; });
  if (!known) return;
  cancelled_.insert({order, call});
  look_for_abandon();
}

void Gate::cancel_evaluation(std::int64_t step) {
  MutexLock lock(mutex_);
  progress_.cancel_evaluation(step);
  if (running_ && progress_.phase() == Phase::evaluation) cancelled_.insert(*running_);
  look_for_abandon();
}

void Gate::finish() {
  MutexLock lock(mutex_);
  conclude();
  outcome_.notify_all();
}

void Gate::conclude() {
  finished_ = true;
  if (!stopped_) ending_.save = settings_.has("ckpt.every") && settings_.integer("ckpt.every") > 0;
}

Ending Gate::ending() const {
  MutexLock lock(mutex_);
  return ending_;
}

Forecast Gate::forecast() const {
  MutexLock lock(mutex_);
  return {settings_, pending_, progress_.step(), paused_, stopped_};
}

Settings Gate::settings_copy() const {
  MutexLock lock(mutex_);
  return settings_;
}

Held Gate::held() const {
  MutexLock lock(mutex_);
  return stopped_ || finished_ ? Held::end : held_;
}

void Gate::report_state_hash(std::int64_t step, std::uint64_t hash) {
  // No wake: it travels with the next heartbeat.
  MutexLock lock(mutex_);
  push(StateHash{step, hash});
}

void Gate::pause() {
  MutexLock lock(mutex_);
  paused_ = true;
  look_ahead();
}

void Gate::propose(const Order& order) {
  {
    MutexLock lock(mutex_);
    push(Proposed{order});
  }
  wake_();
}

void Gate::publish(const std::string& topic, Json data) {
  const auto time = std::chrono::system_clock::now();
  bool first = false;
  {
    MutexLock lock(mutex_);
    if (published_ >= kMostPublished) {
      ++dropped_;
      return;
    }
    const bool urgent = topic != "metrics" || followed_.load(std::memory_order_relaxed);
    first = urgent && urgent_ == 0 && !streaming();
    ++published_;
    if (urgent) ++urgent_;
    const std::uint64_t hold = sync_.load(std::memory_order_relaxed) ? begin_hold(topic) : 0;
    first = first || hold != 0;
    push(Published{topic, std::move(data), time, hold});
  }
  if (first) wake_();
}

/// Training thread: the next step's top waits for the event that is published now, where a rule wants that.
std::uint64_t Gate::begin_hold(const std::string& topic) {
  const double budget_ms = sync_budgets_.value(topic, 0.0);
  if (budget_ms <= 0) return 0;
  const auto budget =
      std::chrono::duration_cast<SteadyClock::duration>(std::chrono::duration<double, std::milli>(budget_ms));
  hold_ = Hold{++last_hold_, topic, SteadyClock::now() + budget};
  look_ahead();
  return hold_->id;
}

void Gate::wait_for_release(MutexLock& lock) {
  progress_.enter(Phase::boundary);
  held_ = Held::rule;
  while (hold_ && outcome_.wait_until(lock, hold_->until) != std::cv_status::timeout) continue;
  held_ = Held::no;
  if (hold_ && !said_late_) {
    said_late_ = true;
    push(Published{
        "warn",
        {{"kind", "sync"},
         {"text", fmt::format("a rule with sync = true on {} took longer than its budget_ms; training "
                              "went on without it (said once)",
                              hold_->topic == "metrics" ? "log" : hold_->topic)}},
        std::chrono::system_clock::now(),
        0});
    wake_();
  }
  hold_.reset();
  look_ahead();
}

void Gate::set_sync(const Json& budgets) {
  MutexLock lock(mutex_);
  sync_budgets_ = budgets.is_object() ? budgets : Json::object();
  sync_.store(!sync_budgets_.empty(), std::memory_order_relaxed);
  if (!hold_ || sync_budgets_.contains(hold_->topic)) return;
  hold_.reset();
  look_ahead();
  outcome_.notify_all();
}

void Gate::release(std::uint64_t hold) {
  MutexLock lock(mutex_);
  if (!hold_ || hold_->id != hold) return;
  hold_.reset();
  look_ahead();
  outcome_.notify_all();
}

Json Gate::store() const {
  MutexLock lock(mutex_);
  return store_;
}

Json Gate::orders_ahead() const {
  MutexLock lock(mutex_);
  Json list = Json::array();
  for (const Committed& committed : pending_)
    if (committed.targeted) list.push_back(to_json(committed.order));
  return list;
}

std::vector<GateEvent> Gate::drain() {
  MutexLock lock(mutex_);
  const auto now = SteadyClock::now();
  streaming_.store(urgent_ > 0 && now - last_urgent_ < kStreamGap, std::memory_order_relaxed);
  if (urgent_ > 0) last_urgent_ = now;
  if (dropped_ > 0) {
    push(Published{"warn",
                   {{"kind", "lost_events"},
                    {"text", fmt::format("{} events came faster than they could be "
                                         "recorded and were dropped",
                                         dropped_)}},
                   std::chrono::system_clock::now(),
                   0});
    dropped_ = 0;
  }
  published_ = urgent_ = 0;
  return std::exchange(events_, {});
}

std::chrono::nanoseconds Gate::time_at_fences() const {
  MutexLock lock(mutex_);
  return time_at_fences_;
}

std::uint64_t Gate::stops_at_fences() const {
  MutexLock lock(mutex_);
  return stops_at_fences_;
}

void Gate::push(GateEvent event) {
  events_.push_back(std::move(event));
}

}  // namespace footplate
