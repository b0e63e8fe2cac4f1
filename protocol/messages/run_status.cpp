#include "protocol/messages/run_status.h"

#include "protocol/messages/fields.h"
#include "protocol/messages/run_status_fields.h"

namespace footplate {

template <>
struct FieldsOf<RankStatus> {
  static void list(auto& field, auto& rank) {
    field("rank", rank.rank);
    field("host", rank.host);
    field("pid", rank.pid);
    field("step", rank.step);
    field("phase", rank.phase);
    field("phase_s", rank.phase_s);
    field("silent_s", rank.silent_s);
    field("stalled", rank.stalled);
    field("collective", rank.collective);
  }
};

template <>
struct FieldsOf<RunStatus> {
  static void list(auto& field, auto& status) {
    field("run", status.run);
    field("started", status.started);
    field("branch", status.branch);
    field("state", status.state);
    field("step", status.step);
    field("steps", status.steps);
    field("world_size", status.world_size);
    field.nullable("loss", status.loss);
    field.nullable("lr", status.lr);
    field.nullable("eval_loss", status.eval_loss);
    field.nullable("tokens_per_s", status.tokens_per_s);
    field("pace_unit", status.pace_unit);
    field.nullable("step_ms", status.step_ms);
    field.nullable("best_eval_loss", status.best_eval_loss);
    field.nullable("eta_s", status.eta_s);
    field.nullable("evaluating_step", status.evaluating_step);
    field.nullable("saving_step", status.saving_step);
    field.nullable("saving_share", status.saving_share);
    field("notes", status.notes);
    field("orders", status.orders);
    field("ranks", status.ranks);
  }
};

Json to_json(const CollectiveStatus& collective) {
  return write_fields(collective);
}
Result<void> read_json(const Json& json, CollectiveStatus& collective) {
  return read_fields(json, collective);
}
Json to_json(const RankStatus& rank) {
  return write_fields(rank);
}
Result<void> read_json(const Json& json, RankStatus& rank) {
  return read_fields(json, rank);
}
Json to_json(const RunStatus& status) {
  return write_fields(status);
}
Result<void> read_json(const Json& json, RunStatus& status) {
  return read_fields(json, status);
}

}  // namespace footplate
