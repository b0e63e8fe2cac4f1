#pragma once

#include <functional>
#include <optional>
#include <string>

#include "runtime/base/clock.h"
#include "runtime/orders/steerable.h"

namespace footplate {

/// NCCL of this rank, as orders act on it.
class NcclSteering {
 public:
  virtual ~NcclSteering() = default;

  /// Control thread. Whether the settings can be, as far as they can count at once (Applies::step). Errors
  /// (refused): why not.
  virtual Result<void> check(const Settings& after) const = 0;
  /// Steerable::renew.
  virtual Result<double> renew(const Settings& after) = 0;

  // Training thread, at the top of a step, before anything of it is enqueued.

  /// From the next collective on: what `now` says of how NCCL does them. False: that is as before.
  virtual bool tune(const Settings& now) = 0;
  /// Whether all ranks' tuners have decided alike so far, and could do what they were told to; a line for
  /// people where not, and from then on NCCL chooses by itself, on all of them. Collective. Errors: lost.
  virtual Result<std::string> compare() = 0;
  /// NCCL chooses by itself until take_rules(): ranks may have different rules.
  virtual void leave_rules() = 0;
  /// By what `now` says again, as tune(). Where any rank has left just that to NCCL, all who would go by it
  /// leave it. What the tuner has decided so far isn't compared any more. Collective. Errors: lost.
  virtual Result<void> take_rules(const Settings& now) = 0;
  /// Measures the collectives of `steps` steps from `first` on, beginning anew; at_step() is called for each.
  virtual void measure(std::int64_t first, std::int64_t steps) = 0;
  virtual void at_step(std::int64_t step) = 0;
  /// What the last measurement has found; without the steps that it lasted.
  virtual NcclMeasurement measured() const = 0;
};

/// A handler beside the trainer (HandlerTable), for orders on nccl.*, which the trainer knows nothing of. A
/// setting that could change nothing, now or at a later start of this run, is refused with the reason,
/// because what is confirmed people take for done. nccl.rebuild, nccl.measure and nccl.profile are done here.
class NcclGuard final : public Steerable {
 public:
  using Publish = std::function<void(EventData event)>;

  /// `at_start`: what this start began with; sources tell which settings the environment overrides.
  /// `nccl`: null where gradients of this start aren't reduced by NCCL; it outlives this. `publish`: to the
  /// console, on rank 0; does nothing elsewhere. `joins`: this process joins a run, and its rules count from
  /// rejoin() on.
  NcclGuard(Settings at_start, NcclSteering* nccl, Publish publish, bool joins = false);

  std::vector<std::string_view> actions() const override;
  Result<void> prepare(const Order& order, const Settings& after) override;
  Result<std::optional<double>> renew(const Settings& after, Renewal what, std::int64_t step) override;
  std::vector<Moved> settings_changed(const Settings& now, std::int64_t step) override;
  Result<CallResult> call(const Call& call, std::int64_t step) override;
  void stand(bool whole) override;
  Result<void> rejoin(const Rejoin& rejoin) override;

  /// Training thread, on every rank, once orders of `step` are in force. Collective where tuners are
  /// compared: after the first step by new rules, and at every guard.check_every. Errors: lost.
  Result<void> before_step(std::int64_t step);

 private:
  struct Measurement {
    std::int64_t first = 0, end = 0;
    SteadyClock::time_point start = {};
    double seconds = 0;
    bool told = false;
    bool is_over(std::int64_t step) const { return step >= end; }
  };
  CallResult measure(std::int64_t step, std::int64_t steps);
  NcclMeasurement report() const;
  void follow_measurement(std::int64_t step);
  Result<void> compare_if_due(std::int64_t step);

  const Settings at_start_;
  NcclSteering* const nccl_;
  const Publish publish_;
  // Training thread.
  Settings now_;
  std::optional<std::int64_t> compare_at_;  ///< the same on all ranks
  std::optional<Measurement> measurement_;
};

}  // namespace footplate
