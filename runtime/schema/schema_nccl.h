#pragma once

#include <vector>

#include "protocol/schema.h"

namespace footplate {

/// The settings nccl.*: each stands for one environment variable of NCCL, which the ranks set at their start
/// (protocol/nccl/variables.h); those that ncclConfig_t has (Applies::comm) the ranks hand to new
/// communicators instead, since the variable would count for more. Their defaults leave the choice to NCCL.
/// Source of names, values and ranges: NCCL's user guide, "Environment Variables", and the sources of
/// v2.28.9-1 (src/graph, src/transport).
std::vector<SettingSpec> nccl_settings();

/// What of them can't be together.
std::vector<Constraint> nccl_constraints();

/// Names that look like NCCL's and are none of those settings: variables of others, and files and libraries
/// that only the environment can name.
std::vector<Hint> nccl_hints();

}  // namespace footplate
