#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "protocol/messages/link_messages.h"
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
    int start = 1;        ///< which one this is
    Settings settings;    ///< in force at its beginning
    std::filesystem::path run_directory;
    std::string branch;  ///< that this start saves into
    Communicator& communicator;
    Progress& progress;
    std::function<void(Warning warning)> publish;  ///< on rank 0
    /// Waits for what is saved beside training, of which ckpt.keep may remove a checkpoint. Collective; may
    /// be empty. Error: lost.
    std::function<Result<void>()> finish_saves;
  };
  explicit LoadHandler(Parts parts);

  std::vector<std::string_view> actions() const override;
  Result<void> prepare(const Order& order, const Settings& after) override;
  std::vector<Moved> settings_changed(const Settings& now, std::int64_t step) override;

  /// A LoadTarget: its settings are what the next start sets whatever the checkpoint has; no source for what
  /// the call itself sets. Collective. Errors: the checkpoint is gone, or damaged; lost.
  Result<CallResult> call(const Call& call, std::int64_t step) override;
  Result<void> rejoin(const Rejoin& rejoin) override;

 private:
  using SetByName = std::map<std::string, SettingNow>;  ///< no source: of the call itself
  /// What a call asks for.
  struct Plan {
    FoundCheckpoint checkpoint;
    std::string branch;
    SetByName settings;
    Settings after;
  };
  Settings given() const;
  Result<Plan> plan(const Call& call, const Settings& now, std::int64_t step) const;
  Result<LoadTarget> verified(const Call& call, std::int64_t step) const;
  void tell(const Plan& plan, std::int64_t step) const;

  const Parts parts_;
  Settings now_;             ///< training thread
  bool ends_start_ = false;  ///< training thread: a call has succeeded
};

}  // namespace footplate
