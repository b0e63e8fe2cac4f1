#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "protocol/json.h"
#include "protocol/messages/best_evaluation.h"
#include "protocol/result.h"
#include "runtime/data/mixture.h"

namespace footplate {

/// How far training is: what a checkpoint keeps besides the state table.
struct TrainingPosition {
  static constexpr double kNoEvaluation = std::numeric_limits<double>::infinity();

  std::int64_t step = 0;          ///< completed
  std::vector<SetPosition> sets;  ///< in the task's order
  double best_eval_loss = kNoEvaluation;
  std::int64_t best_eval_at = -1;  ///< step
  std::string best_eval_branch;    ///< that was at this step; empty: not known
  std::int64_t evaluated_at = -1;  ///< step

  /// Nothing: there was none.
  std::optional<BestEvaluation> best() const;
  std::int64_t samples_drawn() const;
};

/// The text that a checkpoint was trained on.
struct KeptCorpus {
  std::uint64_t bytes = 0;
  std::string hash;
};

/// Snapshot::progress.
struct TrainingProgress {
  TrainingPosition position;  ///< without its sets
  std::int64_t samples_drawn = 0;
  std::map<std::string, SetPosition> sets;  ///< by name, where there are several
  std::optional<KeptCorpus> corpus;         ///< nothing: there is none, or it isn't known
};
Json to_json(const TrainingProgress& progress);
Result<void> read_json(const Json& json, TrainingProgress& progress);

/// Steps that weren't finite.
struct NonfiniteCounts {
  std::int64_t nonfinite = 0;         ///< so far
  std::int64_t nonfinite_in_row = 0;  ///< up to now
};

/// What a rank takes from the one whose state counts, besides the state table.
struct LevelledState {
  TrainingProgress progress;
  NonfiniteCounts counts;
};
Json to_json(const LevelledState& state);
Result<void> read_json(const Json& json, LevelledState& state);

}  // namespace footplate
