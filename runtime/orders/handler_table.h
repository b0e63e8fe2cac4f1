#pragma once

#include <functional>
#include <map>
#include <string_view>
#include <vector>

#include "runtime/orders/steerable.h"

namespace footplate {

/// What orders act on, put together from parts of which each implements only what it does: all have their say
/// in an order and hear of settings, the call of an action has one handler. Threads and errors are
/// Steerable's.
class HandlerTable final : public Steerable {
 public:
  HandlerTable() = default;
  /// In the order in which they are asked; all outlive this.
  explicit HandlerTable(std::vector<Steerable*> handlers);

  /// The first refusal counts.
  Result<void> prepare(const Order& order, const Settings& after) override;
  /// All of them; the seconds of the one that makes communicators.
  Result<std::optional<double>> renew(const Settings& after, Renewal what, std::int64_t step) override;
  /// What all of them set.
  std::vector<std::string> settle(const Settings& before, Settings& after) override;
  /// What moved of all of them.
  std::vector<Moved> settings_changed(const Settings& now, std::int64_t step) override;
  Result<CallResult> call(const Call& call, std::int64_t step) override;
  /// Of the handler that shares state.
  HeldShare held_share() const override;
  /// All of them.
  void stand(bool whole) override;
  /// All of them, the last one first: what a handler says of it is said once this rank is
  /// level. The first error.
  Result<void> rejoin(const Rejoin& rejoin) override;
  /// Likewise.
  Result<void> take_up(const Rejoin& rejoin) override;

 private:
  /// All do it; the first error.
  Result<void> last_first(const std::function<Result<void>(Steerable&)>& part);

  std::vector<Steerable*> handlers_;
  std::map<std::string_view, Steerable*> by_action_;
};

}  // namespace footplate
