#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "console/client/runs/run_record.h"
#include "console/report/series.h"
#include "run_files/starts.h"

namespace footplate::report {

/// A stretch of steps that were trained one after the other. One that a later stretch went back behind
/// (ckpt.load, a restart from a checkpoint) was left from `left_at` on.
struct Stretch {
  std::string branch;
  double first_step = 0;
  double last_step = 0;
  double left_at = std::numeric_limits<double>::infinity();
  std::map<std::string, Series> metrics;
};

/// Something that was changed or called, or that happened.
struct Moment {
  std::string time;        ///< ISO 8601; empty: not known
  std::int64_t step = -1;  ///< -1: none
  std::string who;         ///< user, or session; of what happened its kind
  std::string text;
  bool failure = false;
  bool start = false;  ///< the run went on from a checkpoint
};

/// What a run's files tell of it: metrics.jsonl, events.jsonl, starts.jsonl.
struct RunHistory {
  RunRecord record;
  std::vector<StartRecord> starts;
  std::vector<Stretch> stretches;
  std::vector<Moment> changes;            ///< orders that applied
  std::vector<Moment> happenings;         ///< starts, warnings, lost ranks, what was refused
  std::map<std::string, double> phase_s;  ///< by phase of the step ("forward", …), "evaluation", "saving"
  double trained_steps = 0;               ///< that phase_s is of
  double first_time = 0;                  ///< of a metric, seconds since the epoch
  double last_time = 0;
  std::uint64_t unreadable = 0;  ///< lines
};

/// Reads the files line by line, of a run that is live as well. `wanted`: the metrics to keep; empty: all.
/// What can't be read is left out, and counted.
RunHistory read_run_history(const RunRecord& run, const std::set<std::string>& wanted);

}  // namespace footplate::report
