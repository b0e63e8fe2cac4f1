#pragma once

#include "runtime/control/steerable.h"

namespace footplate {

/// Stands between control and the trainer: answers for orders on nccl.* what the trainer knows nothing of,
/// and hands everything on. A setting that could change nothing, now or at a later start of this run, is
/// refused with the reason, because what is confirmed people take for done.
class NcclGuard final : public Steerable {
 public:
  /// `at_start`: what this start began with; sources tell which settings the environment overrides.
  /// `has_communicator`: whether gradients of this start are reduced by NCCL. `inner` outlives this.
  NcclGuard(Steerable& inner, Settings at_start, bool has_communicator)
      : inner_(inner), at_start_(std::move(at_start)), has_communicator_(has_communicator) {}

  Result<void> prepare(const Order& order, const Settings& after) override;
  std::vector<Moved> settings_changed(const Settings& now, std::int64_t step) override {
    return inner_.settings_changed(now, step);
  }
  Result<Json> call(const Call& call, std::int64_t step) override { return inner_.call(call, step); }
  Result<void> rejoin(const Rejoin& rejoin) override { return inner_.rejoin(rejoin); }

 private:
  Steerable& inner_;
  const Settings at_start_;
  const bool has_communicator_;
};

}  // namespace footplate
