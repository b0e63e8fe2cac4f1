#include "protocol/messages/best_evaluation.h"

#include "protocol/messages/fields.h"

namespace footplate {

template <>
struct FieldsOf<BestEvaluation> {
  static void list(auto& field, auto& best) {
    field.required("loss", best.loss);
    field.required("step", best.step);
    field("branch", best.branch);
  }
};

Json to_json(const BestEvaluation& best) {
  return write_fields(best);
}
Result<void> read_json(const Json& json, BestEvaluation& best) {
  return read_fields(json, best);
}

}  // namespace footplate
