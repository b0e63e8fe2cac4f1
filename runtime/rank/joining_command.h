#pragma once

#include <string>
#include <vector>

#include "runtime/rank/origin.h"
#include "runtime/rank/rank.h"

namespace footplate {

/// What rank 0 starts a process with that is to join its run (comm.replace); its number goes behind it.
/// `options` and `origin`: those of rank 0. `corpus`: RankOptions::corpus.
std::vector<std::string> joining_command(const RankOptions& options, const Origin& origin,
                                         const std::string& corpus);

}  // namespace footplate
