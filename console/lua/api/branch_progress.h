#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "protocol/json.h"

namespace footplate::lua {

/// What came of one branch of branches{}.
struct BranchResult {
  std::string branch;
  std::string set;              ///< "sched.base_lr = 3e-4"
  std::int64_t step = 0;        ///< that it was measured at
  std::string metric;           ///< what was measured
  std::optional<double> value;  ///< nothing: it wasn't finite
  std::string checkpoint;       ///< path of its end
  bool kept = false;            ///< the run goes on from there
};
Json to_json(const BranchResult& result);

/// How far a branches{} has come: kept in `store` across its loads, so that the job's script, which runs
/// again from its top, finds its place.
struct BranchProgress {
  std::uint32_t of = 0;   ///< its arguments, hashed: others begin anew
  std::string from;       ///< the checkpoint, as ckpt.load takes it
  std::int64_t step = 0;  ///< of that; 0: not yet known
  std::int64_t at = 0;  ///< the branch that is under way, from 1; 0: none; more than there are: the last load
  std::string left;     ///< the branch of the run that the load of this one was ordered in
  bool done = false;
  std::vector<BranchResult> results;
};
Json to_json(const BranchProgress& progress);
/// Nothing: there is none.
std::optional<BranchProgress> branch_progress_from(const Json& store, const std::string& name);

}  // namespace footplate::lua
