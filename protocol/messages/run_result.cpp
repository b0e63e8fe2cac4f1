#include "protocol/messages/run_result.h"

#include "protocol/messages/fields.h"

namespace footplate {

template <>
struct FieldsOf<LoadTarget> {
  static void list(auto& field, auto& target) {
    field("path", target.path);
    field("step", target.step);
    field("branch", target.branch);
    field("settings", target.settings);
    field.unless_empty("order", target.order);
    field.unless_empty("store", target.store);
  }
};

template <>
struct FieldsOf<RunResult> {
  static void list(auto& field, auto& result) {
    field("code", result.code);
    field("reason", result.reason);
    field("step", result.step);
    field("skipped", result.skipped);
    field.nullable("checkpoint", result.checkpoint);
    field("restarts", result.restarts);
    field("recoveries", result.recoveries);
    field.nullable("state_hash", result.state_hash);
    field.nullable("eval_loss", result.eval_loss);
    field("full_eval_loss", result.full_eval_loss);
    field.unless_empty("note", result.note);
    field("load", result.load);
  }
};

Json to_json(const LoadTarget& target) {
  return write_fields(target);
}
Result<void> read_json(const Json& json, LoadTarget& target) {
  return read_fields(json, target);
}
Json to_json(const RunResult& result) {
  return write_fields(result);
}
Result<void> read_json(const Json& json, RunResult& result) {
  return read_fields(json, result);
}
RunResult run_result_from_file(const Json& json) {
  return read_tolerantly<RunResult>(json);
}

}  // namespace footplate
