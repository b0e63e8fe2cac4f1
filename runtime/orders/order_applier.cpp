#include "runtime/orders/order_applier.h"

#include <algorithm>
#include <iterator>
#include <stdexcept>
#include <utility>

#include "protocol/own_session.h"
#include "protocol/store.h"
#include "runtime/schema/actions.h"

namespace footplate {
namespace {

bool is_own(const std::string& action) {
  return action == kPause || action == kResume || action == kStore || action == kNote ||
         (ends_start(action) && action != kLoad);
}

Ending ending_of_stop(const Order& order, const Call& call) {
  const bool own = order.session == kOwnSession;
  Ending ending;
  ending.reason = own ? call.text("reason", std::string(kEndedSignal)) : std::string(kEndedAsked);
  ending.save = call.flag("save", true);
  ending.resumable = call.flag("resumable");
  if (!own) ending.note = call.text("reason");
  if (const std::string error = own ? "" : call.text("error"); !error.empty()) {
    ending.script_error = true;
    ending.reason = error;
  }
  return ending;
}

Ending ending_of_restart(const Call& call) {
  Ending ending;
  ending.reason = kEndedRestart;
  ending.save = ending.resumable = true;
  ending.note = call.text("reason");
  return ending;
}

/// Nothing is saved: what came after the checkpoint is what nobody wants.
Ending ending_of_load(const Order& order, const Call& call, LoadTarget target) {
  Ending ending;
  ending.reason = kLoadEnding;
  ending.resumable = true;
  ending.note = call.text("reason");
  ending.load = std::move(target);
  ending.load->order = source_of(order);
  return ending;
}

void fail_call(CallMoved& moved, const std::string& error) {
  moved.state = CallState::failed;
  moved.error = error;
}

}  // namespace

void OrderApplier::apply(GateState& state, std::int64_t step, const Committed& due) {
  state.applied.begin();
  OrderApplied outcome;
  outcome.order = due.order.id;
  outcome.step = step;
  if (!change_settings(state, due.order, step, outcome)) return put_back(state, due);
  outcome.digest = state.course.settings().digest(schema_);
  const bool in_force = !outcome.error;
  if (in_force) state.applied.set_in_force(due.order.id);
  state.tell(std::move(outcome));
  if (in_force) run_calls(state, step, due.order);
  state.running.forget(due.order.id);
}

bool OrderApplier::change_settings(GateState& state, const Order& order, std::int64_t step,
                                   OrderApplied& outcome) {
  const Settings& now = state.course.settings();  // changed by this thread alone
  auto after = with_changes(schema_, now, order);
  if (!after) {
    outcome.error = after.error();
    return true;
  }
  if (order.changes.empty()) return true;
  const std::vector<std::string> settled = steerable_->settle(now, *after);
  const auto some_apply = [&](Applies how) {
    return std::any_of(order.changes.begin(), order.changes.end(), [&](const auto& change) {
      const SettingSpec* spec = schema_.setting(change.name);
      return spec != nullptr && spec->applies == how && after->value(change.name) != now.value(change.name);
    });
  };
  const Renewal what{some_apply(Applies::comm), some_apply(Applies::state)};
  if ((what.communicators || what.state) && !renew(state, *after, what, step, outcome)) return false;
  if (outcome.error) return true;
  for (const auto& change : order.changes)
    outcome.moved.push_back({change.name, now.value(change.name), change.value});
  for (const std::string& name : settled)
    outcome.moved.push_back({name, now.value(name), after->value(name)});
  state.course.set_settings(*std::move(after));
  state.look_ahead();
  std::vector<Moved> also;
  {
    MutexUnlock unlocked(state.mutex);
    also = steerable_->settings_changed(now, step);
  }
  std::move(also.begin(), also.end(), std::back_inserter(outcome.moved));
  return true;
}

bool OrderApplier::renew(GateState& state, const Settings& after, Renewal what, std::int64_t step,
                         OrderApplied& outcome) {
  if (state.applied.calls_are_over()) {
    state.applied.begin_calls();
    if (state.applied.is_refused()) outcome.error = Error{ErrorKind::refused, state.applied.refusal()};
    return true;
  }
  Result<std::optional<double>> renewed;
  {
    MutexUnlock unlocked(state.mutex);
    renewed = steerable_->renew(after, what, step);
  }
  if (!renewed && renewed.error().kind == ErrorKind::lost) {
    if (!recoverable_) throw std::runtime_error(renewed.error().message);
    return false;
  }
  state.applied.begin_calls();
  if (renewed) {
    outcome.renewed_s = *renewed;
  } else {
    outcome.error = renewed.error();
    state.applied.refuse(renewed.error().message);
  }
  return true;
}

/// It is applied once those who are left have agreed how to go on.
void OrderApplier::put_back(GateState& state, const Committed& order) {
  state.applied.take_back();
  state.pending.put_back(order);
  state.recovery.hold();
  state.look_ahead();
}

void OrderApplier::run_calls(GateState& state, std::int64_t step, const Order& order) {
  for (std::size_t i = 0; i < order.calls.size(); ++i) {
    CallMoved moved;
    moved.order = order.id;
    moved.call = i;
    moved.action = order.calls[i].action;
    if (state.course.stopped()) {
      fail_call(moved, "the run is stopping");
    } else if (is_own(moved.action)) {
      run_own(state, order, moved, step);
    } else if (state.applied.calls_are_over()) {
      state.applied.begin_calls();
      fail_call(moved, "a rank was lost while others were at it; give it again");
    } else if (moved.action == kAdmit) {
      run_admit(state, order, moved, step);
    } else {
      run_foreign(state, order, moved, step);
    }
    if (moved.state != CallState::running) state.tell(std::move(moved));
  }
}

void OrderApplier::run_own(GateState& state, const Order& order, CallMoved& moved, std::int64_t step) {
  const Call& call = order.calls[moved.call];
  if (call.action == kPause) state.course.pause(true);
  if (call.action == kResume) state.course.pause(false);
  if (call.action == kStop) state.course.stop(ending_of_stop(order, call));
  if (call.action == kRestart) state.course.stop(ending_of_restart(call));
  if (call.action == kNote)
    state.events.push(
        Published{Note{step, call.text("text"), source_of(order)}, std::chrono::system_clock::now(), 0});
  state.look_ahead();
  moved.state = CallState::done;
  moved.result = DoneAtStep{step};
  if (call.action != kStore) return;
  if (auto stored = state.course.keep(call.arguments); !stored) fail_call(moved, stored.error().message);
}

/// All stand here until the joining rank is in. An order of an earlier start comes again by a resume or a
/// replay.
void OrderApplier::run_admit(GateState& state, const Order& order, CallMoved& moved, std::int64_t step) {
  if (!recoverable_ || order.calls[moved.call].text("start") != start_)
    return fail_call(moved, "it was for another start of this run: nobody waits to be let in");
  state.applied.begin_calls();
  state.recovery.hold();
  state.look_ahead();
  moved.state = CallState::done;
  moved.result = DoneAtStep{step};
}

void OrderApplier::run_foreign(GateState& state, const Order& order, CallMoved& moved, std::int64_t step) {
  state.running.begin(moved.order, moved.call, moved.action);
  state.applied.begin_calls();
  state.look_for_abandon();
  CallMoved begun = moved;
  begun.state = CallState::running;
  state.tell(std::move(begun));

  Result<CallResult> result;
  {
    MutexUnlock unlocked(state.mutex);
    result = call(order.calls[moved.call], step);
  }

  if (state.running.is_deferred()) {
    moved.state = CallState::running;
  } else if (result) {
    moved.state = CallState::done;
    moved.result = *std::move(result);
    if (auto* target = std::get_if<LoadTarget>(&moved.result)) {
      if (Json kept = kept_in_store(state.course.store()); !kept.empty()) target->store = std::move(kept);
      state.course.stop(ending_of_load(order, order.calls[moved.call], *target));
    }
  } else {
    moved.state = state.running.is_cancelled() ? CallState::cancelled : CallState::failed;
    moved.error = result.error().message;
    if (result.error().kind == ErrorKind::lost && recoverable_) state.recovery.hold();
  }
  state.running.end();
  state.look_ahead();
  state.look_for_abandon();
}

Result<CallResult> OrderApplier::call(const Call& call, std::int64_t step) {
  try {
    return steerable_->call(call, step);
  } catch (const std::exception& error) {
    return fail(ErrorKind::failed, error.what());
  } catch (...) {
    return fail(ErrorKind::failed, call.action + ": it threw something that is no std::exception");
  }
}

}  // namespace footplate
