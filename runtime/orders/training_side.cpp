#include "runtime/orders/training_side.h"

#include <stdexcept>
#include <utility>

namespace footplate {

/// StepFence::passes() alone is called without the mutex.
StepGate::Verdict TrainingSide::enter(std::int64_t step) NO_THREAD_SAFETY_ANALYSIS {
  if (state_.fence.passes(step)) return Verdict::train;
  return enter_slowly(step);
}

StepGate::Verdict TrainingSide::enter_slowly(std::int64_t step) {
  MutexLock lock(state_.mutex);
  if (state_.hold.holds()) wait_for_rule(lock);
  for (;;)
    if (const auto verdict = act(lock, step)) return *verdict;
}

std::optional<StepGate::Verdict> TrainingSide::act(MutexLock& lock, std::int64_t& step) {
  if (state_.recovery.holds()) {
    rejoin(lock, step);
    return std::nullopt;
  }
  const bool at_end = state_.course.at_end(step);
  const bool paused = state_.course.paused();
  const bool is_behind = state_.applied.is_behind();
  if (const auto due = state_.pending.take_due(step, paused || at_end || is_behind)) {
    state_.look_ahead();
    state_.look_for_abandon();
    applier_.apply(state_, step, *due);
  } else if (is_behind) {
    state_.applied.caught_up();
  } else if (state_.fence.blocks(step)) {
    stand_still(lock, Held::fence, step);
  } else if (state_.course.stopped() || (at_end && !paused)) {
    if (state_.course.finished()) return Verdict::end;
    announce_end(step);
    stand_still(lock, Held::end, step);
  } else if (paused) {
    stand_still(lock, Held::pause, step);
  } else {
    return Verdict::train;
  }
  return std::nullopt;
}

/// Sleeps until the control thread has something new. The caller looks again at everything.
void TrainingSide::stand_still(MutexLock& lock, Held why, std::int64_t step) {
  state_.progress.enter(why == Held::pause ? Phase::paused
                        : why == Held::end ? Phase::ending
                                           : Phase::boundary);
  if (why != Held::fence) state_.wake();
  state_.held = why;
  state_.held_at = step;
  const auto began = SteadyClock::now();
  state_.outcome.wait(lock);
  if (why == Held::fence) state_.fence.count_stop(SteadyClock::now() - began);
  state_.held = Held::no;
  state_.progress.enter(Phase::boundary);
}

void TrainingSide::announce_end(std::int64_t step) {
  const std::uint64_t commits = state_.pending.commits();
  if (state_.announced_end == commits) return;
  state_.announced_end = commits;
  state_.tell(ReachedEnd{step, commits});
}

void TrainingSide::wait_for_rule(MutexLock& lock) {
  state_.progress.enter(Phase::boundary);
  state_.held = Held::rule;
  while (state_.hold.holds() &&
         state_.outcome.wait_until(lock, state_.hold.until()) != std::cv_status::timeout)
    continue;
  state_.held = Held::no;
  if (auto late = state_.hold.end()) state_.tell(*std::move(late));
  state_.look_ahead();
}

/// Until control has made a new world; then with the others there. Where another rank is lost meanwhile:
/// again.
void TrainingSide::rejoin(MutexLock& lock, std::int64_t& step) {
  const bool whole = state_.recovery.is_whole();
  {
    MutexUnlock unlocked(state_.mutex);
    applier_.steerable().stand(whole);
  }
  state_.progress.enter(Phase::boundary);
  state_.held = Held::lost;
  state_.held_at = step;
  state_.wake();
  state_.outcome.wait(lock, [this]() REQUIRES(state_.mutex) { return state_.recovery.is_decided(); });
  if (!state_.recovery.given_up().empty()) throw std::runtime_error(state_.recovery.given_up());
  state_.held = Held::no;
  const Rejoin now = state_.recovery.take();
  state_.look_for_abandon();
  state_.progress.at_step(now.step);  // as on the others, whose ledgers have the step of what follows
  Result<void> there;
  {
    MutexUnlock unlocked(state_.mutex);
    there = applier_.steerable().rejoin(now);
  }
  if (there) {
    state_.recovery.set_whole();
    step = now.step;
    state_.progress.at_step(step);
    MutexUnlock unlocked(state_.mutex);
    there = applier_.steerable().take_up(now);
  }
  if (!there && there.error().kind != ErrorKind::lost) throw std::runtime_error(there.error().message);
  if (!there && now.save) state_.recovery.interrupt(Interrupted::save, now.tag);
  if (!there) state_.recovery.hold();
  state_.look_ahead();
}

bool TrainingSide::lost(Interrupted what, const std::string& tag) {
  if (!applier_.recoverable()) return false;
  MutexLock lock(state_.mutex);
  state_.recovery.interrupt(what, tag);
  state_.look_ahead();
  return true;
}

void TrainingSide::all_are_level() {
  MutexLock lock(state_.mutex);
  state_.tell(AllLevel{});
}

std::string TrainingSide::interruption() const {
  MutexLock lock(state_.mutex);
  return state_.recovery.interruption();
}

Result<void> TrainingSide::meet(const std::string& what, std::chrono::milliseconds at_most) {
  MutexLock lock(state_.mutex);
  const std::uint64_t ticket = state_.meetings.come();
  if (!state_.meetings.is_decided(ticket) && !state_.recovery.holds()) {
    state_.tell(Arrived{ticket, what, at_most});
    state_.outcome.wait(lock, [&]() REQUIRES(state_.mutex) {
      return state_.meetings.is_decided(ticket) || state_.recovery.holds();
    });
  }
  if (!state_.meetings.is_decided(ticket))
    return fail(ErrorKind::lost, "a rank was lost before all had come to " + what);
  const std::string error = state_.meetings.take(ticket);
  state_.look_for_abandon();
  if (error.empty()) return {};
  return fail(ErrorKind::timed_out, error);
}

std::optional<DeferredCall> TrainingSide::defer() {
  MutexLock lock(state_.mutex);
  return state_.running.defer();
}

void TrainingSide::conclude(const DeferredCall& call, Result<CallResult> outcome) {
  CallMoved moved;
  moved.order = call.order;
  moved.call = call.call;
  moved.action = call.action;
  moved.state = outcome ? CallState::done : CallState::failed;
  if (outcome)
    moved.result = *std::move(outcome);
  else
    moved.error = outcome.error().message;
  MutexLock lock(state_.mutex);
  state_.tell(std::move(moved));
}

Ending TrainingSide::ending() const {
  MutexLock lock(state_.mutex);
  return state_.course.ending();
}

/// Changed by this thread alone, inside enter(): it reads without the mutex.
const Settings& TrainingSide::settings() const NO_THREAD_SAFETY_ANALYSIS {
  return state_.course.settings();
}

std::uint64_t TrainingSide::last_applied() const {
  MutexLock lock(state_.mutex);
  return state_.applied.last_id();
}

std::uint64_t TrainingSide::applied() const {
  MutexLock lock(state_.mutex);
  return state_.applied.count();
}

Json TrainingSide::store() const {
  MutexLock lock(state_.mutex);
  return state_.course.store();
}

Json TrainingSide::orders_ahead() const {
  MutexLock lock(state_.mutex);
  Json list = Json::array();
  for (const Committed& committed : state_.pending.all())
    if (committed.targeted) list.push_back(to_json(committed.order));
  return list;
}

void TrainingSide::report(StateHash state) {
  // No wake: it travels with the next heartbeat.
  MutexLock lock(state_.mutex);
  state_.events.push(std::move(state));
}

void TrainingSide::pause() {
  MutexLock lock(state_.mutex);
  state_.course.pause(true);
  state_.look_ahead();
}

void TrainingSide::propose(const Order& order) {
  MutexLock lock(state_.mutex);
  state_.tell(Proposed{order});
}

void TrainingSide::publish(EventData data) {
  const auto time = std::chrono::system_clock::now();
  bool wake = false;
  {
    MutexLock lock(state_.mutex);
    if (!state_.events.has_room()) return;
    const std::uint64_t hold = state_.hold.begin(topic_of(data));
    if (hold != 0) state_.look_ahead();
    wake = state_.events.publish({std::move(data), time, hold});
  }
  if (wake) state_.wake();
}

}  // namespace footplate
