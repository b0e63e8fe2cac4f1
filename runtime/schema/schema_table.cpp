#include "runtime/schema/schema_table.h"

#include "runtime/schema/settings_groups.h"

namespace footplate {

Schema runtime_schema() {
  Schema schema;
  add_run_settings(schema.settings);
  add_model_settings(schema.settings);
  add_train_settings(schema.settings);
  add_optimizer_settings(schema.settings);
  add_data_settings(schema.settings);
  add_evaluation_settings(schema.settings);
  add_checkpoint_settings(schema.settings);
  add_comm_settings(schema.settings);
  add_guard_settings(schema.settings);
  add_log_settings(schema.settings);
  add_debug_settings(schema.settings);
  add_nccl_settings(schema.settings);
  add_actions(schema.actions);
  schema.hints = nccl_hints();
  for (Hint& hint : hints_of_others()) schema.hints.push_back(std::move(hint));
  schema.constraints = {
      {Constraint::Kind::divides, "model.width", "model.heads", "every head gets an equal part of the width"},
      {Constraint::Kind::at_most, "train.micro_batch", "train.batch_size",
       "a micro-batch is cut from a rank's slice of the batch; 0 takes the whole slice at once"},
      {Constraint::Kind::needs, "train.param_dtype", "train.precision",
       "what is kept in bf16 is computed in bf16", 0, "bf16"},
  };
  for (auto& rule : nccl_constraints()) schema.constraints.push_back(std::move(rule));
  return schema;
}

}  // namespace footplate
