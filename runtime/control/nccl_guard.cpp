#include "runtime/control/nccl_guard.h"

#include "protocol/variables.h"
#include "runtime/control/actions.h"

namespace footplate {
namespace {

constexpr auto kMin = "nccl.min_ctas";
constexpr auto kMax = "nccl.max_ctas";

/// 0 is NCCL's choice.
bool is_upside_down(const Settings& settings) {
  return settings.integer(kMin) > 0 && settings.integer(kMax) > 0 &&
         settings.integer(kMin) > settings.integer(kMax);
}

}  // namespace

Result<void> NcclGuard::prepare(const Order& order, const Settings& after) {
  for (const Call& call : order.calls)
    if (call.action == kRebuild && communicators_ == nullptr)
      return fail(ErrorKind::refused,
                  std::string(kRebuild) +
                      ": this run trains on the processors (run.device) and has no NCCL communicator");
  bool asked = false;
  for (const Change& change : order.changes) {
    if (!change.name.starts_with("nccl.")) continue;
    asked = true;
    if (communicators_ == nullptr)
      return fail(ErrorKind::refused,
                  change.name +
                      " would change nothing: this run trains on the processors (run.device) and "
                      "has no NCCL communicator. Set it in the config of a run on devices");
    if (at_start_.has(change.name) && is_from_environment(at_start_.source(change.name)))
      return fail(ErrorKind::refused,
                  change.name +
                      " would change nothing: its variable in the environment of footplate run "
                      "overrides it at every start. Unset that, and go on with --resume auto");
  }
  if (asked && is_upside_down(after))
    return fail(ErrorKind::refused, std::string(kMin) + " = " + to_text(after.value(kMin)) + " is above " +
                                        kMax + " = " + to_text(after.value(kMax)));
  return inner_.prepare(order, after);
}

Result<std::optional<double>> NcclGuard::renew(const Settings& after, std::int64_t /*step*/) {
  if (communicators_ == nullptr) return std::optional<double>();  // an order of another run, that is replayed
  const auto seconds = communicators_->renew(after);
  if (!seconds) return tl::unexpected(seconds.error());
  return std::optional<double>(*seconds);
}

Result<Json> NcclGuard::call(const Call& call, std::int64_t step) {
  if (call.action != kRebuild) return inner_.call(call, step);
  const auto renewed = renew(now_, step);
  if (!renewed) return tl::unexpected(renewed.error());
  if (!*renewed)
    return fail(ErrorKind::refused, std::string(kRebuild) + ": this run has no NCCL communicator");
  return Json{{"step", step}, {"seconds", **renewed}};
}

}  // namespace footplate
