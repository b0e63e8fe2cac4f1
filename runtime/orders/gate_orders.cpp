// What the gate does with an order that is due.
#include <algorithm>
#include <iterator>
#include <stdexcept>

#include "protocol/store.h"
#include "runtime/orders/gate.h"
#include "runtime/schema/actions.h"
#include "runtime/watch/messages.h"

namespace footplate {
namespace {

bool is_own(const std::string& action) {
  return action == "run.pause" || action == "run.resume" || action == "run.store" || action == kNote ||
         (ends_start(action) && action != kLoad);
}

}  // namespace

void Gate::apply(Lock& lock, std::int64_t step, const Committed& due) {
  ++applied_;
  OrderApplied outcome;
  outcome.order = due.order.id;
  outcome.step = step;
  if (!change_settings(lock, due.order, step, outcome)) return put_back(due);
  outcome.digest = settings_.digest(schema_);
  const bool in_force = !outcome.error;
  if (in_force) last_applied_ = due.order.id;
  push(std::move(outcome));
  wake_();
  if (in_force) run_calls(lock, step, due.order);
  cancelled_.erase(cancelled_.lower_bound({due.order.id, 0}), cancelled_.lower_bound({due.order.id + 1, 0}));
}

/// False: a rank was lost meanwhile, and nothing has come of it yet.
bool Gate::change_settings(Lock& lock, const Order& order, std::int64_t step, OrderApplied& outcome) {
  auto after = with_changes(schema_, settings_, order);
  if (!after) {
    outcome.error = after.error();
    return true;
  }
  if (order.changes.empty()) return true;
  const bool for_communicators =
      std::any_of(order.changes.begin(), order.changes.end(), [&](const auto& change) {
        const SettingSpec* spec = schema_.setting(change.name);
        return spec != nullptr && spec->applies == Applies::comm &&
               after->value(change.name) != settings_.value(change.name);
      });
  if (for_communicators && !renew(lock, *after, step, outcome)) return false;
  if (outcome.error) return true;
  for (const auto& change : order.changes)
    outcome.moved.push_back({change.name, settings_.value(change.name), change.value});
  settings_ = *std::move(after);
  look_ahead();
  lock.unlock();
  auto also = steerable_->settings_changed(settings_, step);
  lock.lock();
  std::move(also.begin(), also.end(), std::back_inserter(outcome.moved));
  return true;
}

/// What a rank that is lost meanwhile keeps some from hearing, the others tell by the numbers that they stand
/// with (recovery.h): those follow them instead of trying alone.
bool Gate::renew(Lock& lock, const Settings& after, std::int64_t step, OrderApplied& outcome) {
  if (applied_ <= calls_over_) {
    if (applied_ == refused_) outcome.error = Error{ErrorKind::refused, refusal_};
    return true;
  }
  lock.unlock();
  const auto renewed = steerable_->renew(after, step);
  lock.lock();
  if (!renewed && renewed.error().kind == ErrorKind::lost) {
    if (!recoverable_) throw std::runtime_error(renewed.error().message);
    return false;
  }
  begun_ = applied_;
  if (renewed) {
    outcome.renewed_s = *renewed;
  } else {
    outcome.error = renewed.error();
    refused_ = applied_;
    refusal_ = renewed.error().message;
  }
  return true;
}

/// It is applied once those who are left have found together.
void Gate::put_back(const Committed& order) {
  --applied_;
  const auto place = std::lower_bound(pending_.begin(), pending_.end(), order,
                                      [](const Committed& a, const Committed& b) { return a.step < b.step; });
  pending_.insert(place, order);
  lost_ = true;
  look_ahead();
}

void Gate::run_calls(Lock& lock, std::int64_t step, const Order& order) {
  for (std::size_t i = 0; i < order.calls.size(); ++i) {
    CallMoved moved;
    moved.order = order.id;
    moved.call = i;
    moved.action = order.calls[i].action;
    if (stopped_) {
      moved.state = "failed";
      moved.error = "the run is stopping";
    } else if (is_own(moved.action)) {
      run_own(order, moved, step);
    } else if (applied_ <= calls_over_) {
      moved.state = "failed";
      moved.error = "a rank was lost while others were at it; give it again";
    } else if (moved.action == kAdmit) {
      run_admit(order, moved, step);
    } else {
      run_foreign(lock, order, moved, step);
    }
    push(std::move(moved));
    wake_();
  }
}

void Gate::run_own(const Order& order, CallMoved& moved, std::int64_t step) {
  const Json& arguments = order.calls[moved.call].arguments;
  if (moved.action == "run.pause") paused_ = true;
  if (moved.action == "run.resume") paused_ = false;
  if (moved.action == "run.stop") {
    stopped_ = true;
    const bool own = order.session == kOwnSession;
    ending_.reason = own ? arguments.value("reason", "signal") : "asked";
    ending_.note = own ? "" : arguments.value("reason", "");
    ending_.save = arguments.value("save", true);
    ending_.resumable = arguments.value("resumable", false);
    if (const std::string error = own ? "" : arguments.value("error", ""); !error.empty()) {
      ending_.script_error = true;
      ending_.reason = error;
    }
  }
  if (moved.action == kNote)
    push(Published{"note",
                   {{"step", step}, {"text", arguments.value("text", "")}, {"source", source_of(order)}},
                   std::chrono::system_clock::now(),
                   0});
  if (moved.action == "run.restart") {
    stopped_ = true;
    ending_ = {.reason = "restart", .save = true, .resumable = true, .note = arguments.value("reason", "")};
  }
  look_ahead();
  moved.state = "done";
  moved.result = {{"step", step}};
  if (moved.action != "run.store") return;
  if (auto stored = apply_store(store_, arguments); !stored) {
    moved.state = "failed";
    moved.error = stored.error().message;
  }
}

/// Nothing is saved: what came after the checkpoint is what nobody wants.
void Gate::end_to_load(const Order& order, const CallMoved& moved) {
  stopped_ = true;
  ending_ = {.reason = kLoadEnding,
             .resumable = true,
             .note = order.calls[moved.call].arguments.value("reason", ""),
             .load = moved.result};
  ending_.load["order"] = source_of(order);
}

/// All stand here until the joining rank is in. An order of an earlier start comes again by a resume or a
/// replay.
void Gate::run_admit(const Order& order, CallMoved& moved, std::int64_t step) {
  if (!recoverable_ || order.calls[moved.call].arguments.value("start", "") != start_) {
    moved.state = "failed";
    moved.error = "it was for another start of this run: nobody waits to be let in";
    return;
  }
  begun_ = applied_;
  lost_ = true;
  look_ahead();
  moved.state = "done";
  moved.result = {{"step", step}};
}

void Gate::run_foreign(Lock& lock, const Order& order, CallMoved& moved, std::int64_t step) {
  running_ = CallKey{moved.order, moved.call};
  begun_ = applied_;
  look_for_abandon();
  CallMoved begun = moved;
  begun.state = "running";
  push(std::move(begun));
  wake_();

  lock.unlock();
  Result<Json> result = fail(ErrorKind::failed, "");
  try {
    result = steerable_->call(order.calls[moved.call], step);
  } catch (const std::exception& error) {
    result = fail(ErrorKind::failed, error.what());
  }
  lock.lock();

  if (result) {
    moved.state = "done";
    moved.result = *std::move(result);
    if (moved.action == kLoad) end_to_load(order, moved);
  } else {
    moved.state = cancelled_.count(*running_) > 0 ? "cancelled" : "failed";
    moved.error = result.error().message;
    if (result.error().kind == ErrorKind::lost && recoverable_) lost_ = true;
  }
  running_.reset();
  look_ahead();
  look_for_abandon();
}

}  // namespace footplate
