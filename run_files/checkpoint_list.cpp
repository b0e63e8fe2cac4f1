#include "run_files/checkpoint_list.h"

#include "protocol/messages/fields.h"
#include "run_files/checkpoint_folders.h"
#include "run_files/checkpoint_manifest.h"

namespace footplate {

template <>
struct FieldsOf<CheckpointSummary> {
  static void list(auto& field, auto& one) {
    field("name", one.name);
    field("branch", one.branch);
    field("step", one.step);
    field.unless_empty("tag", one.tag);
    field.unless_empty("best", one.best);
    field("loss", one.loss);
    field("loss_step", one.loss_step);
    field("created", one.created);
    field("bytes", one.bytes);
  }
};

Json to_json(const CheckpointSummary& checkpoint) {
  return write_fields(checkpoint);
}
Result<void> read_json(const Json& json, CheckpointSummary& checkpoint) {
  return read_fields(json, checkpoint);
}

bool is_of_best(const BestEvaluation& best, std::int64_t step, const std::string& branch,
                const std::optional<BestEvaluation>& until_then, bool marked) {
  if (step != best.step) return false;
  if (best.branch.empty()) return marked;  // an older checkpoint's
  // Of another branch: the first one there, which is the checkpoint that it came from, saved again.
  return branch == best.branch || until_then == best;
}

std::vector<CheckpointSummary> summaries_of(const std::filesystem::path& run_directory,
                                            const std::optional<BestEvaluation>& best) {
  std::vector<CheckpointSummary> all;
  bool best_seen = false;
  for (const auto& branch : list_branches(run_directory))
    for (const auto& path : list_checkpoints(branch)) {
      const auto manifest = read_checkpoint_manifest(path);
      if (!manifest || !manifest->step) continue;
      CheckpointSummary one;
      one.branch = branch.filename().string();
      one.name = one.branch + "/" + path.filename().string();
      one.step = *manifest->step;
      one.tag = manifest->tag;
      one.best = best && !best_seen &&
                 is_of_best(*best, one.step, manifest->branch, manifest->best_evaluation, manifest->best);
      best_seen = best_seen || one.best;
      one.loss = manifest->metrics.number("eval/loss");
      if (const auto at = manifest->metrics.number("eval/step"))
        one.loss_step = static_cast<std::int64_t>(*at);
      one.created = manifest->created;
      for (const CheckpointFile& file : manifest->files) one.bytes += file.bytes;
      all.push_back(std::move(one));
    }
  return all;
}

}  // namespace footplate
