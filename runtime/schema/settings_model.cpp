#include "runtime/schema/rows.h"
#include "runtime/schema/settings_groups.h"

namespace footplate {
namespace {

std::vector<SettingRow> model_rows() {
  return {
      {.name = "model.layers",
       .value = 4,
       .range = {.min = 1, .max = 1024},
       .applies = Applies::fixed,
       .aliases = {"n_layer", "num_layers", "model.depth"},
       .help = "The model has this many transformer blocks",
       .example = "model.layers = 6"},
      {.name = "model.heads",
       .value = 4,
       .range = {.min = 1, .max = 1024},
       .applies = Applies::fixed,
       .aliases = {"n_head", "num_heads"},
       .help = "Each block has this many attention heads. The number has to divide model.width",
       .example = "model.heads = 8"},
      {.name = "model.width",
       .value = 128,
       .range = {.min = 1, .max = 65536},
       .applies = Applies::fixed,
       .aliases = {"n_embd", "hidden_size", "d_model", "model.dim"},
       .help = "The residual stream has this width (the embedding dimension)",
       .example = "model.width = 256"},
      {.name = "model.context",
       .value = 128,
       .unit = "tokens",
       .range = {.min = 1, .max = 1048576},
       .applies = Applies::fixed,
       .aliases = {"block_size", "seq_len", "model.seq_len", "context_length"},
       .help = "A training sequence has this many tokens; a token is a byte",
       .example = "model.context = 256"},
      {.name = "model.vocabulary",
       .value = 256,
       .unit = "tokens",
       .range = {.min = 256, .max = 1000000},
       .applies = Applies::fixed,
       .aliases = {"vocab_size", "n_vocab", "model.vocab_size"},
       .help = "The output has this width. Bytes need 256; more makes the model as large as one over words",
       .example = "model.vocabulary = 50257"},
      {.name = "model.step_ms",
       .value = 10.0,
       .unit = "ms",
       .range = {.min = 0, .max = 600000},
       .applies = Applies::fixed,
       .help = "Computing a step of the synthetic task takes this long",
       .example = "model.step_ms = 50"},
      {.name = "model.elements",
       .value = 1000,
       .range = {.min = 1, .max = 2e+09},
       .applies = Applies::fixed,
       .help = "The synthetic task has this many parameters",
       .example = "model.elements = 100000"},
  };
}

}  // namespace

void add_model_settings(std::vector<SettingSpec>& table) {
  add(table, model_rows());
}

}  // namespace footplate
