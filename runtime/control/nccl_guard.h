#pragma once

#include "runtime/control/steerable.h"

namespace footplate {

/// NCCL's communicators of this rank, as orders act on them.
class NcclRenewal {
 public:
  virtual ~NcclRenewal() = default;
  /// Steerable::renew.
  virtual Result<double> renew(const Settings& after) = 0;
};

/// Stands between control and the trainer: answers for orders on nccl.* what the trainer knows nothing of,
/// and hands everything on. A setting that could change nothing, now or at a later start of this run, is
/// refused with the reason, because what is confirmed people take for done. nccl.rebuild is done here.
class NcclGuard final : public Steerable {
 public:
  /// `at_start`: what this start began with; sources tell which settings the environment overrides.
  /// `communicators`: null where gradients of this start aren't reduced by NCCL. Both outlive this.
  NcclGuard(Steerable& inner, Settings at_start, NcclRenewal* communicators)
      : inner_(inner), at_start_(std::move(at_start)), now_(at_start_), communicators_(communicators) {}

  Result<void> prepare(const Order& order, const Settings& after) override;
  Result<std::optional<double>> renew(const Settings& after, std::int64_t step) override;
  std::vector<Moved> settings_changed(const Settings& now, std::int64_t step) override {
    now_ = now;
    return inner_.settings_changed(now, step);
  }
  Result<Json> call(const Call& call, std::int64_t step) override;
  Result<void> rejoin(const Rejoin& rejoin) override { return inner_.rejoin(rejoin); }

 private:
  Steerable& inner_;
  const Settings at_start_;
  Settings now_;  ///< training thread
  NcclRenewal* const communicators_;
};

}  // namespace footplate
