#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "console/lua/config/journal_reader.h"
#include "protocol/order.h"
#include "protocol/schema.h"
#include "run_files/orders_file.h"

namespace footplate {

/// What led to a run's newest state, from starts.jsonl and journal.lua. A run that went back to a checkpoint
/// left behind what it had applied after it: that is not part of its history, but of what it was to apply
/// again.
struct History {
  /// In the order in which they applied; `at_step` is the step. One with id 0 stands for what a later start's
  /// configuration changed.
  std::vector<Order> applied;
  std::size_t before_last_start = 0;  ///< so many of them are from earlier starts
  int loaded = 0;                     ///< the last start that ckpt.load led to; 0: none
  std::size_t before_loaded = 0;      ///< so many of them are from before that one
  /// By start: the newest order in the journal by its end.
  std::map<int, std::uint64_t> newest_order;
  /// Changes of settings, and actions of the task, that the last start was to apply again and hasn't.
  std::vector<Order> ahead;
  /// What orders of `applied` and `ahead` did with settings and actions that the task doesn't declare any
  /// more: left out of them.
  std::vector<GoneChange> gone;
};

/// "task.noise = 0.3", "task.export{…}": what was done with it.
std::string change_text(const GoneChange& gone);

/// Errors (usage): the journal or starts.jsonl can't be read.
Result<History> read_history(const std::filesystem::path& directory, const Schema& schema);

/// Writes orders-START.json, which all ranks read at their start: every change of settings and action of the
/// task in the journal, so that after a crash those past the checkpoint it goes on from apply again at their
/// steps (the ranks leave out what the checkpoint holds). Where the start before was one that had applied
/// some again and failed too, the last of those is marked as left out. Nothing to apply: no file. Returns
/// lines that people should know: what can't be applied again, as the task doesn't declare it any more.
/// Errors: as above, or the disk.
Result<std::vector<std::string>> schedule_again(const std::filesystem::path& directory, int start,
                                                const Schema& schema);

/// The orders of a history that decide about the state, for orders-1.json of a replay: changes of settings
/// but run.time_limit and comm.auto (what that has ordered is among them), actions of the task, and the
/// run.stop that ended it.
/// New ids where there is none. Nothing in them pauses.
std::vector<Order> orders_to_replay(const History& history);

/// guard.nonfinite for a replay, where nobody lets a paused run go on: "skip" for "pause", which ends with
/// the same parameters.
Value without_pause(const Value& nonfinite);

/// Writes orders-START.json.
Result<void> write_orders_ahead(const std::filesystem::path& directory, int start, OrdersWhy why,
                                const std::vector<Order>& orders,
                                const std::vector<std::uint64_t>& left_out = {});

}  // namespace footplate
