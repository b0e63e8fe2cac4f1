#pragma once

#include <string>
#include <vector>

#include "runtime/rank/rank.h"

namespace footplate {

/// What rank 0 starts a process with that is to join its run (comm.replace); its number goes behind it.
/// `options`: those of rank 0. `branch`: of its checkpoints. `corpus`: RankOptions::corpus.
std::vector<std::string> joining_command(const RankOptions& options, const std::string& branch,
                                         const std::string& corpus);

}  // namespace footplate
