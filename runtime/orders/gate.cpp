#include "runtime/orders/gate.h"

#include <utility>

#include "runtime/schema/actions.h"

namespace footplate {

Gate::Gate(const Schema& schema, Settings settings, Progress& progress, std::function<void()> wake,
           Json store)
    : state_(progress, std::move(settings), std::move(store), std::move(wake)), training_(schema, state_) {
  MutexLock lock(state_.mutex);
  state_.look_ahead();
}

void Gate::join(std::uint64_t applied, std::uint64_t last_applied) {
  MutexLock lock(state_.mutex);
  state_.applied.join(applied, last_applied);
  state_.recovery.join();
  state_.look_ahead();
}

std::int64_t Gate::propose_fence() {
  MutexLock lock(state_.mutex);
  if (state_.held != Held::pause && state_.held != Held::end) return state_.fence.propose();
  state_.fence.put_at(state_.held_at);
  return state_.held_at;
}

void Gate::release_fence() {
  MutexLock lock(state_.mutex);
  state_.release_fence();
  state_.outcome.notify_all();
}

void Gate::commit(Committed committed) {
  MutexLock lock(state_.mutex);
  state_.pending.commit(std::move(committed));
  state_.release_fence();
  state_.look_for_abandon();
  state_.outcome.notify_all();
}

void Gate::withdraw(std::uint64_t order) {
  MutexLock lock(state_.mutex);
  state_.pending.withdraw(order);
  state_.release_fence();
  state_.look_for_abandon();
  state_.outcome.notify_all();
}

bool Gate::is_pending(std::uint64_t order) const {
  MutexLock lock(state_.mutex);
  return state_.pending.contains(order);
}

void Gate::cancel(std::uint64_t order, std::size_t call) {
  MutexLock lock(state_.mutex);
  if (!state_.running.is_of(order) && !state_.pending.contains(order)) return;
  state_.running.cancel(order, call);
  state_.look_for_abandon();
}

void Gate::cancel_evaluation(std::int64_t step) {
  MutexLock lock(state_.mutex);
  state_.progress.cancel_evaluation(step);
  if (state_.progress.phase() == Phase::evaluation) state_.running.cancel();
  state_.look_for_abandon();
}

void Gate::met(std::uint64_t ticket, const std::string& error) {
  MutexLock lock(state_.mutex);
  state_.meetings.decide(ticket, error);
  state_.look_for_abandon();
  state_.outcome.notify_all();
}

void Gate::finish() {
  MutexLock lock(state_.mutex);
  state_.course.finish();
  state_.outcome.notify_all();
}

std::pair<std::uint64_t, std::uint64_t> Gate::applied() const {
  MutexLock lock(state_.mutex);
  return {state_.applied.count(), state_.applied.last_id()};
}

void Gate::set_interruption(std::string why) {
  MutexLock lock(state_.mutex);
  state_.recovery.set_interruption(std::move(why));
}

void Gate::hold_for_recovery() {
  MutexLock lock(state_.mutex);
  state_.recovery.hold_again();
  state_.look_ahead();
  state_.look_for_abandon();
  state_.outcome.notify_all();
}

std::optional<RecoveryState> Gate::recovery_state() const {
  MutexLock lock(state_.mutex);
  if (state_.held != Held::lost || state_.recovery.is_resumed()) return std::nullopt;
  return RecoveryState{state_.recovery.is_whole() ? state_.held_at : -1,
                       state_.held_at,
                       state_.course.paused(),
                       state_.course.finished(),
                       state_.recovery.save_again(),
                       state_.pending.commits(),
                       state_.applied.count(),
                       state_.applied.begun(),
                       state_.applied.refused(),
                       state_.applied.refusal()};
}

void Gate::resume(const Rejoin& rejoin, std::uint64_t commits, std::uint64_t begun, bool paused,
                  bool finished) {
  MutexLock lock(state_.mutex);
  state_.applied.resume(begun, rejoin.refused, rejoin.refusal, rejoin.applied);
  state_.meetings.reset();
  state_.announced_end.reset();
  state_.pending.set_commits(commits);
  if (!rejoin.checkpoint.empty()) {
    state_.pending.go_back(rejoin.left, rejoin.step);
    state_.progress.at_step(rejoin.step);  // the next fence comes behind it
  }
  state_.recovery.resume(rejoin);
  state_.course.pause(paused);
  if (finished)
    state_.course.finish();
  else if (state_.course.ending().reason == kLoadEnding)
    state_.course.take_stop_back();  // not all may have heard that the checkpoint can be loaded
  state_.release_fence();
  state_.look_for_abandon();
  state_.outcome.notify_all();
}

void Gate::give_up(const std::string& why) {
  MutexLock lock(state_.mutex);
  state_.recovery.give_up(why);
  state_.look_ahead();
  state_.look_for_abandon();
  state_.outcome.notify_all();
}

void Gate::set_sync(SyncTopics budgets) {
  MutexLock lock(state_.mutex);
  if (!state_.hold.set_budgets(std::move(budgets))) return;
  state_.look_ahead();
  state_.outcome.notify_all();
}

void Gate::release(std::uint64_t hold) {
  MutexLock lock(state_.mutex);
  if (!state_.hold.release(hold)) return;
  state_.look_ahead();
  state_.outcome.notify_all();
}

Forecast Gate::forecast() const {
  MutexLock lock(state_.mutex);
  return {state_.course.settings(), state_.pending.all(), state_.progress.step(), state_.course.stopped()};
}

Settings Gate::settings() const {
  MutexLock lock(state_.mutex);
  return state_.course.settings();
}

Held Gate::held() const {
  MutexLock lock(state_.mutex);
  return state_.course.stopped() || state_.course.finished() ? Held::end : state_.held;
}

std::vector<GateEvent> Gate::drain() {
  MutexLock lock(state_.mutex);
  return state_.events.drain(SteadyClock::now());
}

void Gate::set_followed(bool followed) {
  MutexLock lock(state_.mutex);
  state_.events.set_followed(followed);
}

bool Gate::streaming() const {
  MutexLock lock(state_.mutex);
  return state_.events.streaming();
}

std::chrono::nanoseconds Gate::time_at_fences() const {
  MutexLock lock(state_.mutex);
  return state_.fence.time_stopped();
}

std::uint64_t Gate::stops_at_fences() const {
  MutexLock lock(state_.mutex);
  return state_.fence.stops();
}

}  // namespace footplate
