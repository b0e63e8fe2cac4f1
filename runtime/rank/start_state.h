#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "protocol/gone_settings.h"
#include "protocol/settings.h"
#include "run_files/run_file.h"
#include "runtime/checkpoint/resumed_settings.h"
#include "runtime/rank/orders_ahead.h"
#include "runtime/rank/origin.h"
#include "runtime/rank/rank.h"
#include "runtime/rank/start_meeting.h"
#include "runtime/records/rank_records.h"
#include "runtime/schema/schema_table.h"

namespace footplate {

/// What a start begins with: its settings, the checkpoint that it goes on from, and what that one keeps.
struct StartState {
  Schema schema = runtime_schema();  ///< with what a plugin declares, once the configuration is read
  RunFile record;                    ///< as `footplate run` wrote it
  Settings configured;               ///< as `footplate run` gave them
  std::vector<GoneSetting> gone;     ///< of the configuration, where the task was edited meanwhile
  Settings settings;                 ///< with what the checkpoint brings
  Origin origin;
  std::string started;          ///< when; the same text on all ranks
  Json given = Json::object();  ///< what this start's configuration set otherwise than the checkpoint
  std::vector<GivenOtherwise> of_model;  ///< ResumedSettings::of_model

  std::uint64_t last_order = 0;      ///< that the checkpoint holds
  Json store = Json::object();       ///< of the checkpoint
  Json kept_orders = Json::array();  ///< that were agreed for later steps when it was written
  OrdersAhead ahead;                 ///< with those that a crash undid, or a replay brings
};

// Each fills in its part of `state`, in this order. The errors of collective ones are the same on all ranks.

/// run.json and config-K.json. Error (usage): they can't be read, or hold what the schema doesn't allow.
Result<void> read_configuration(StartState& state, const RankOptions& options);

/// Rank 0 looks for a checkpoint and verifies it, the others follow. Collective.
Result<void> choose_origin(StartState& state, const RankOptions& options, StartMeeting& meeting,
                           RankRecords& records);

/// The settings of the checkpoint in `state.origin`, and what it keeps; rank 0 tells of differences, and of
/// settings that the task doesn't declare any more. Collective.
Result<void> take_over_checkpoint(StartState& state, const RankOptions& options, StartMeeting& meeting,
                                  RankRecords& records);

/// Orders of an earlier start, or of the run that this one replays; training begins after `step`. Collective.
Result<void> read_orders(StartState& state, const RankOptions& options, StartMeeting& meeting,
                         RankRecords& records, std::int64_t step);

}  // namespace footplate
