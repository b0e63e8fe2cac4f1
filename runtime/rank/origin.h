#pragma once

#include <filesystem>
#include <functional>
#include <string>

#include "protocol/json.h"
#include "protocol/result.h"
#include "runtime/comm/communicator.h"
#include "runtime/control/recovery.h"

namespace footplate {

/// Where a start begins; the same on all ranks.
struct Origin {
  std::string checkpoint;       ///< path; empty: fresh
  std::string branch = "main";  ///< that it saves into
  bool opens_branch = false;    ///< nothing was saved into that before
};

Json to_json(const Origin& origin);
Result<void> read_json(const Json& json, Origin& origin);

/// What `resume` and `branch` of RankOptions mean. Reads and verifies checkpoints: for one rank. `skipped`
/// hears of those that don't verify. Errors as of resolve_resume.
Result<Origin> find_origin(const std::filesystem::path& run_directory, const std::string& resume,
                           const std::string& branch, const std::function<void(const std::string&)>& skipped);

/// Rank 0's, on all ranks. Collective. Error: rank 0's, on all ranks.
Result<Origin> share(Communicator& communicator, const Result<Origin>& mine);

/// Of a running start: of the branch that it saves into; before the first one, what it began with. Verifies
/// nothing. Its error (failed): there is none.
NewestCheckpoint newest_checkpoint(const Origin& origin, const std::filesystem::path& run_directory);

}  // namespace footplate
