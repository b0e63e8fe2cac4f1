#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "protocol/schema.h"
#include "runtime/base/progress.h"
#include "runtime/checkpoint/branches.h"
#include "runtime/comm/communicator.h"
#include "runtime/orders/steerable.h"

namespace footplate {

/// ckpt.load, a handler beside the trainer (HandlerTable). Whether the checkpoint
/// is there, and the settings fit together, is seen before all agree; that it is whole, before the ranks end:
/// what can't be loaded costs a run nothing. `footplate run` starts the ranks again, from the checkpoint and
/// in a branch of its own.
class LoadHandler final : public Steerable {
 public:
  struct Parts {
    const Schema& schema;
    Settings configured;  ///< of this start, as `footplate run` gave them
    Settings settings;    ///< in force at its beginning
    std::filesystem::path run_directory;
    std::string branch;  ///< that this start saves into
    Communicator& communicator;
    Progress& progress;
    std::function<void(const std::string& topic, Json data)> publish;  ///< on rank 0
  };
  explicit LoadHandler(Parts parts);

  std::vector<std::string_view> actions() const override;
  Result<void> prepare(const Order& order, const Settings& after) override;
  std::vector<Moved> settings_changed(const Settings& now, std::int64_t step) override;

  /// {"path", "step", "branch", "settings": what the next start sets whatever the checkpoint
  /// has, by name: {"value", "source"}}; no source for what the call itself sets. Collective. Errors: the
  /// checkpoint is gone, or damaged; lost.
  Result<Json> call(const Call& call, std::int64_t step) override;
  Result<void> rejoin(const Rejoin& rejoin) override;

 private:
  /// What a call asks for.
  struct Plan {
    FoundCheckpoint checkpoint;
    std::string branch;
    Json settings;  ///< as in the result
    Settings after;
  };
  Result<Plan> plan(const Json& arguments, const Settings& now, std::int64_t step) const;
  Result<Json> verified(const Json& arguments, std::int64_t step) const;
  void tell(const Plan& plan, std::int64_t step) const;

  const Parts parts_;
  Settings now_;             ///< training thread
  bool ends_start_ = false;  ///< training thread: a call has succeeded
};

}  // namespace footplate
