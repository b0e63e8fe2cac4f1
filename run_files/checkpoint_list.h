#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "protocol/messages/best_evaluation.h"

namespace footplate {

/// A checkpoint of a run as ckpt.list() has it.
struct CheckpointSummary {
  std::string name;  ///< "main/step-00000600": below the run's checkpoints/
  std::string branch;
  std::int64_t step = 0;
  std::string tag;
  bool best = false;                      ///< of the best evaluation
  std::optional<double> loss;             ///< of the last evaluation on eval.batches before it was saved
  std::optional<std::int64_t> loss_step;  ///< whose parameters that was of
  std::string created;                    ///< ISO 8601
  std::uint64_t bytes = 0;
};
Json to_json(const CheckpointSummary& checkpoint);
Result<void> read_json(const Json& json, CheckpointSummary& checkpoint);

/// Those of a run whose manifests can be read, by branch (the one that was saved into last first), the newest
/// first. Verifies nothing. `best`: the run's best evaluation.
std::vector<CheckpointSummary> summaries_of(const std::filesystem::path& run_directory,
                                            const std::optional<BestEvaluation>& best);

/// Whether a checkpoint has the parameters that `best` is of: by its step and branch, what it says itself of
/// the best evaluation until then, and whether it is marked as that.
bool is_of_best(const BestEvaluation& best, std::int64_t step, const std::string& branch,
                const std::optional<BestEvaluation>& until_then, bool marked);

}  // namespace footplate
