#include "runtime/orders/order_applier.h"

#include <algorithm>
#include <iterator>
#include <stdexcept>
#include <utility>

#include "runtime/schema/actions.h"
#include "runtime/watch/messages.h"

namespace footplate {
namespace {

bool is_own(const std::string& action) {
  return action == "run.pause" || action == "run.resume" || action == "run.store" || action == kNote ||
         (ends_start(action) && action != kLoad);
}

Ending ending_of_stop(const Order& order, const Json& arguments) {
  const bool own = order.session == kOwnSession;
  Ending ending{.reason = own ? arguments.value("reason", "signal") : "asked",
                .save = arguments.value("save", true),
                .resumable = arguments.value("resumable", false),
                .note = own ? "" : arguments.value("reason", "")};
  if (const std::string error = own ? "" : arguments.value("error", ""); !error.empty()) {
    ending.script_error = true;
    ending.reason = error;
  }
  return ending;
}

Ending ending_of_restart(const Json& arguments) {
  return {.reason = "restart", .save = true, .resumable = true, .note = arguments.value("reason", "")};
}

/// Nothing is saved: what came after the checkpoint is what nobody wants.
Ending ending_of_load(const Order& order, const Json& arguments, const Json& result) {
  Ending ending{
      .reason = kLoadEnding, .resumable = true, .note = arguments.value("reason", ""), .load = result};
  ending.load["order"] = source_of(order);
  return ending;
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
  const bool for_communicators =
      std::any_of(order.changes.begin(), order.changes.end(), [&](const auto& change) {
        const SettingSpec* spec = schema_.setting(change.name);
        return spec != nullptr && spec->applies == Applies::comm &&
               after->value(change.name) != now.value(change.name);
      });
  if (for_communicators && !renew(state, *after, step, outcome)) return false;
  if (outcome.error) return true;
  for (const auto& change : order.changes)
    outcome.moved.push_back({change.name, now.value(change.name), change.value});
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

bool OrderApplier::renew(GateState& state, const Settings& after, std::int64_t step, OrderApplied& outcome) {
  if (state.applied.calls_are_over()) {
    if (state.applied.is_refused()) outcome.error = Error{ErrorKind::refused, state.applied.refusal()};
    return true;
  }
  Result<std::optional<double>> renewed;
  {
    MutexUnlock unlocked(state.mutex);
    renewed = steerable_->renew(after, step);
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
      moved.state = "failed";
      moved.error = "the run is stopping";
    } else if (is_own(moved.action)) {
      run_own(state, order, moved, step);
    } else if (state.applied.calls_are_over()) {
      moved.state = "failed";
      moved.error = "a rank was lost while others were at it; give it again";
    } else if (moved.action == kAdmit) {
      run_admit(state, order, moved, step);
    } else {
      run_foreign(state, order, moved, step);
    }
    state.tell(std::move(moved));
  }
}

void OrderApplier::run_own(GateState& state, const Order& order, CallMoved& moved, std::int64_t step) {
  const Json& arguments = order.calls[moved.call].arguments;
  if (moved.action == "run.pause") state.course.pause(true);
  if (moved.action == "run.resume") state.course.pause(false);
  if (moved.action == "run.stop") state.course.stop(ending_of_stop(order, arguments));
  if (moved.action == "run.restart") state.course.stop(ending_of_restart(arguments));
  if (moved.action == kNote)
    state.events.push(
        Published{"note",
                  {{"step", step}, {"text", arguments.value("text", "")}, {"source", source_of(order)}},
                  std::chrono::system_clock::now(),
                  0});
  state.look_ahead();
  moved.state = "done";
  moved.result = {{"step", step}};
  if (moved.action != "run.store") return;
  if (auto stored = state.course.keep(arguments); !stored) {
    moved.state = "failed";
    moved.error = stored.error().message;
  }
}

/// All stand here until the joining rank is in. An order of an earlier start comes again by a resume or a
/// replay.
void OrderApplier::run_admit(GateState& state, const Order& order, CallMoved& moved, std::int64_t step) {
  if (!recoverable_ || order.calls[moved.call].arguments.value("start", "") != start_) {
    moved.state = "failed";
    moved.error = "it was for another start of this run: nobody waits to be let in";
    return;
  }
  state.applied.begin_calls();
  state.recovery.hold();
  state.look_ahead();
  moved.state = "done";
  moved.result = {{"step", step}};
}

void OrderApplier::run_foreign(GateState& state, const Order& order, CallMoved& moved, std::int64_t step) {
  state.running.begin(moved.order, moved.call);
  state.applied.begin_calls();
  state.look_for_abandon();
  CallMoved begun = moved;
  begun.state = "running";
  state.tell(std::move(begun));

  Result<Json> result;
  {
    MutexUnlock unlocked(state.mutex);
    result = call(order.calls[moved.call], step);
  }

  if (result) {
    moved.state = "done";
    moved.result = *std::move(result);
    if (moved.action == kLoad)
      state.course.stop(ending_of_load(order, order.calls[moved.call].arguments, moved.result));
  } else {
    moved.state = state.running.is_cancelled() ? "cancelled" : "failed";
    moved.error = result.error().message;
    if (result.error().kind == ErrorKind::lost && recoverable_) state.recovery.hold();
  }
  state.running.end();
  state.look_ahead();
  state.look_for_abandon();
}

Result<Json> OrderApplier::call(const Call& call, std::int64_t step) {
  try {
    return steerable_->call(call, step);
  } catch (const std::exception& error) {
    return fail(ErrorKind::failed, error.what());
  }
}

}  // namespace footplate
