#pragma once

#include <cstdint>
#include <filesystem>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "console/client/runs/run_record.h"
#include "console/report/recorded_settings_json.h"
#include "console/report/series.h"
#include "run_files/starts.h"

namespace footplate::report {

inline constexpr double kNever = std::numeric_limits<double>::infinity();

/// Of the metrics, the eval/loss that can't be compared with the others: of an evaluation that was cut short,
/// and in runs of older versions that of the last one, on everything that is held out.
inline constexpr auto kOtherEvaluations = "eval/loss of other batches";

/// A stretch of steps that were trained one after the other. One that a later stretch went back behind was
/// left from `left_at` on, and from `repeated_at` on its steps were trained once more in the same branch (a
/// restart from a checkpoint).
struct Stretch {
  std::string branch;
  double first_step = 0;
  double last_step = 0;
  double left_at = kNever;
  double repeated_at = kNever;
  std::map<std::string, Series> metrics = {};
};

/// What a setting was and became.
struct SettingMove {
  std::string name;
  Value before;
  Value after;
  std::int64_t step = -1;  ///< -1: at the beginning of a branch
};

/// What came of a run from one ckpt.load to the next, or of its beginning.
struct Branch {
  std::string name;
  std::string parent;  ///< the branch of the checkpoint that it began with; empty: it is the run's beginning
  std::int64_t first_step = 0;
  double last_step = 0;
  double left_at = kNever;              ///< the run went on elsewhere from there
  std::vector<SettingMove> moves = {};  ///< by ckpt.load itself, then while it was trained
  double train_loss = std::numeric_limits<double>::quiet_NaN();  ///< mean of the last lines; NaN: none
  double eval_loss = std::numeric_limits<double>::quiet_NaN();   ///< the last one
  double best_loss = std::numeric_limits<double>::quiet_NaN();   ///< of whole evaluations
};

enum class MomentKind {
  quiet,          ///< training goes on as before: an evaluation, a save, how often is logged
  change,         ///< a setting or a call
  learning_rate,  ///< a change that moves it
  start,          ///< the run went on from a checkpoint
  failure,
};

/// Something that was changed or called, or that happened.
struct Moment {
  std::string time;        ///< ISO 8601; empty: not known
  std::int64_t step = -1;  ///< -1: none
  std::string who;         ///< user, or session; of what happened its kind
  std::string text;
  MomentKind kind = MomentKind::change;
  std::string branch = {};
  std::string label = {};  ///< a few words, for a chart
};

/// What a run's files tell of it: metrics.jsonl, events.jsonl, starts.jsonl, config-K.json.
struct RunHistory {
  RunRecord record;
  std::vector<StartRecord> starts;
  std::vector<Stretch> stretches;
  std::vector<Branch> branches;           ///< in the order in which they began
  std::vector<Moment> changes;            ///< orders that applied
  std::vector<Moment> happenings;         ///< starts, warnings, lost ranks, what was refused
  RecordedSettings configured;            ///< of the first start
  RecordedSettings now;                   ///< after all that was changed
  std::map<std::string, double> phase_s;  ///< by phase of the step ("forward", …), "evaluation", "saving"
  double trained_steps = 0;               ///< that phase_s is of
  double trained_s = 0;                   ///< from the first metrics of each start to its last ones
  std::uint64_t unreadable = 0;           ///< lines

  /// Null: there is none of this name.
  const Branch* branch(const std::string& name) const;
  /// The last value of a metric in a branch up to `step`, with its own step.
  std::optional<std::pair<double, double>> last_value(const std::string& branch, const std::string& metric,
                                                      double step) const;
};

/// Reads the files line by line, of a run that is live as well. What can't be read is left out, and counted.
RunHistory read_run_history(const RunRecord& run);

/// `text` with paths within `folder` as they are there: a page is read on other machines.
std::string in_folder(std::string text, const std::filesystem::path& folder);

/// A value for people: numbers of at most 4 significant digits, text without quotes.
std::string shown(const Value& value);
/// "optim.lr_scale 1 → 0.5"
std::string shown(const SettingMove& move);

}  // namespace footplate::report
