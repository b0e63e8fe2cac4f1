#include "protocol/messages/fields.h"
#include "runtime/train/training_progress.h"

namespace footplate {

template <>
struct FieldsOf<KeptCorpus> {
  static void list(auto& field, auto& corpus) {
    field("bytes", corpus.bytes);
    field("hash", corpus.hash);
  }
};

template <>
struct FieldsOf<SetPosition> {
  static void list(auto& field, auto& set) {
    field("drawn", set.drawn);
    field("credit", set.credit);
  }
};

template <>
struct FieldsOf<TrainingProgress> {
  static void list(auto& field, auto& progress) {
    field.required("step", progress.position.step);
    field.required("samples_drawn", progress.samples_drawn);
    field.unless_none("sets", progress.sets);
    field("best_eval_loss", progress.position.best_eval_loss);
    field("best_eval_at", progress.position.best_eval_at);
    field.unless_empty("best_eval_branch", progress.position.best_eval_branch);
    field.required("evaluated_at", progress.position.evaluated_at);
    field.nullable("corpus", progress.corpus);
  }
};

template <>
struct FieldsOf<NonfiniteCounts> {
  static void list(auto& field, auto& counts) {
    field("nonfinite", counts.nonfinite);
    field("nonfinite_in_row", counts.nonfinite_in_row);
  }
};

template <>
struct FieldsOf<LevelledState> {
  static void list(auto& field, auto& state) {
    field.required("progress", state.progress);
    field.required("counts", state.counts);
  }
};

Json to_json(const TrainingProgress& progress) {
  return write_fields(progress);
}
Result<void> read_json(const Json& json, TrainingProgress& progress) {
  return read_fields(json, progress);
}

Json to_json(const LevelledState& state) {
  return write_fields(state);
}
Result<void> read_json(const Json& json, LevelledState& state) {
  return read_fields(json, state);
}

}  // namespace footplate
