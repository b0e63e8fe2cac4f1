#pragma once

#include <vector>

#include "protocol/schema.h"

namespace footplate {

// One file for each group of settings; each function appends its rows to the table. Any thread.

void add_run_settings(std::vector<SettingSpec>& table);
void add_model_settings(std::vector<SettingSpec>& table);
void add_train_settings(std::vector<SettingSpec>& table);
void add_optimizer_settings(std::vector<SettingSpec>& table);  ///< sched.* and optim.*
void add_data_settings(std::vector<SettingSpec>& table);
void add_evaluation_settings(std::vector<SettingSpec>& table);
void add_checkpoint_settings(std::vector<SettingSpec>& table);
void add_comm_settings(std::vector<SettingSpec>& table);
void add_guard_settings(std::vector<SettingSpec>& table);
void add_log_settings(std::vector<SettingSpec>& table);
void add_debug_settings(std::vector<SettingSpec>& table);

/// The settings nccl.*: each stands for one environment variable of NCCL, which the ranks set at their start
/// (protocol/nccl/variables.h). Those that ncclConfig_t has (Applies::comm) the ranks hand to new
/// communicators instead, since the variable would count for more. Their defaults leave the choice to NCCL.
/// Source of names, values and ranges: NCCL's user guide, "Environment Variables", and the sources of
/// v2.28.9-1 (src/graph, src/transport).
void add_nccl_settings(std::vector<SettingSpec>& table);

/// Combinations of those that NCCL can't do.
std::vector<Constraint> nccl_constraints();

/// Names that look like NCCL's and are none of those settings: variables of others, and files and libraries
/// that only the environment can name.
std::vector<Hint> nccl_hints();

/// Names of settings of other programs that no setting here stands for, and what to do instead. Those that
/// one stands for are its aliases.
std::vector<Hint> hints_of_others();

/// All actions (actions.h has the names that the sources use).
void add_actions(std::vector<ActionSpec>& table);

}  // namespace footplate
