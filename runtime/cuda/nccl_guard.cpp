#include "runtime/cuda/nccl_guard.h"

#include <algorithm>
#include <array>
#include <utility>

#include "protocol/nccl/variables.h"
#include "runtime/base/times.h"
#include "runtime/schema/actions.h"
#include "runtime/watch/event_parts.h"

namespace footplate {
namespace {

constexpr std::array kOwn{kRebuild, kMeasure, kProfile};

bool is_nccls(const std::string& action) {
  return std::find(kOwn.begin(), kOwn.end(), action) != kOwn.end();
}

tl::unexpected<Error> no_communicator(const std::string& action) {
  return fail(ErrorKind::refused,
              action + ": this run trains on the processors (run.device) and has no NCCL communicator");
}

}  // namespace

NcclGuard::NcclGuard(Settings at_start, NcclSteering* nccl, Publish publish, bool joins)
    : at_start_(std::move(at_start)), nccl_(nccl), publish_(std::move(publish)), now_(at_start_) {
  if (nccl_ != nullptr && !joins) nccl_->tune(now_);
}

std::vector<std::string_view> NcclGuard::actions() const {
  return {kOwn.begin(), kOwn.end()};
}

Result<void> NcclGuard::prepare(const Order& order, const Settings& after) {
  for (const Call& call : order.calls)
    if (is_nccls(call.action) && nccl_ == nullptr) return no_communicator(call.action);
  bool asked = false;
  for (const Change& change : order.changes) {
    if (!change.name.starts_with("nccl.")) continue;
    asked = true;
    if (nccl_ == nullptr)
      return fail(ErrorKind::refused,
                  change.name +
                      " would change nothing: this run trains on the processors (run.device) and "
                      "has no NCCL communicator. Set it in the config of a run on devices");
    if (at_start_.has(change.name) && is_from_environment(at_start_.source(change.name)))
      return fail(ErrorKind::refused,
                  change.name +
                      " would change nothing: its variable in the environment of footplate run, or in a "
                      "file of NCCL's, overrides it at every start (" +
                      at_start_.source(change.name) + "). Take it out there, and go on with --resume auto");
  }
  if (asked)
    if (auto can = nccl_->check(after); !can) return can;
  return {};
}

Result<std::optional<double>> NcclGuard::renew(const Settings& after, Renewal what, std::int64_t /*step*/) {
  if (!what.communicators || nccl_ == nullptr)
    return std::optional<double>();  // an order of another run, that is replayed
  const auto seconds = nccl_->renew(after);
  if (!seconds) return tl::unexpected(seconds.error());
  return std::optional<double>(*seconds);
}

std::vector<Moved> NcclGuard::settings_changed(const Settings& now, std::int64_t step) {
  now_ = now;
  // What came of it shows once a step is done so: a rank that decides otherwise, a rule that can't be met.
  if (nccl_ != nullptr && nccl_->tune(now_)) compare_at_ = step + 1;
  return {};
}

Result<CallResult> NcclGuard::call(const Call& call, std::int64_t step) {
  if (nccl_ == nullptr) return no_communicator(call.action);
  if (call.action == kMeasure) return measure(step, call.integer("steps", 1));
  if (call.action == kProfile) {
    if (!measurement_)
      return fail(ErrorKind::refused,
                  std::string(kProfile) + ": nothing was measured; nccl.measure{ steps = 50 } does");
    if (!measurement_->told)
      return fail(ErrorKind::refused, std::string(kProfile) + ": measuring until step " +
                                          std::to_string(measurement_->end) +
                                          "; run.wait{ event = \"nccl\" } waits for it");
    return report();
  }
  const auto renewed = renew(now_, {.communicators = true}, step);
  if (!renewed) return tl::unexpected(renewed.error());
  return CommunicatorsRenewed{step, renewed->value_or(0)};
}

/// Some may have applied an order about rules that others, or a rank that joins, still have before them; or
/// all but the one that joins may have left the choice to NCCL. What tries the new communicators goes by no
/// rules, on all of them: ranks that choose differently hang.
void NcclGuard::stand(bool /*whole*/) {
  if (nccl_ != nullptr) nccl_->leave_rules();
}

/// All compare after the next step. Those who apply an order about rules now begin to count then; so the rest
/// begins here, behind what the trainer has sent to try the new communicators (HandlerTable goes from the
/// last one to the first). A measurement begins anew: what the loss took isn't NCCL's time.
Result<void> NcclGuard::rejoin(const Rejoin& rejoin) {
  if (nccl_ == nullptr) return {};
  if (auto taken = nccl_->take_rules(now_); !taken) return taken;
  compare_at_ = rejoin.step + 1;
  if (measurement_ && !measurement_->told) measure(rejoin.step, measurement_->end - measurement_->first);
  return {};
}

Result<void> NcclGuard::before_step(std::int64_t step) {
  if (nccl_ == nullptr) return {};
  if (measurement_) follow_measurement(step);
  return compare_if_due(step);
}

CallResult NcclGuard::measure(std::int64_t step, std::int64_t steps) {
  measurement_ = Measurement{.first = step, .end = step + steps};
  nccl_->measure(step, steps);
  return MeasurementBegun{step, steps, step + steps - 1};
}

/// What ends on a device is told a moment after it: the report comes a step later.
void NcclGuard::follow_measurement(std::int64_t step) {
  Measurement& it = *measurement_;
  if (it.told) return;
  nccl_->at_step(step);
  if (step <= it.first)
    it.start = SteadyClock::now();  // a step that others were waited for at isn't measured
  if (it.is_over(step) && it.seconds == 0) it.seconds = in_seconds(SteadyClock::now() - it.start);
  if (step <= it.end) return;
  it.told = true;
  publish_(report());
}

NcclMeasurement NcclGuard::report() const {
  NcclMeasurement found = nccl_->measured();
  const auto steps = measurement_->end - measurement_->first;
  found.step = measurement_->end;
  found.steps = steps;
  found.step_ms = measurement_->seconds * 1e3 / static_cast<double>(steps);
  return found;
}

Result<void> NcclGuard::compare_if_due(std::int64_t step) {
  const auto every = now_.integer("guard.check_every");
  const bool due = (compare_at_ && step >= *compare_at_) || (every > 0 && step % every == 0);
  if (!due) return {};
  compare_at_.reset();
  auto said = nccl_->compare();
  if (!said) return tl::unexpected(said.error());
  if (!said->empty()) publish_(warning_at(WarningKind::nccl, step, *said));
  return {};
}

}  // namespace footplate
