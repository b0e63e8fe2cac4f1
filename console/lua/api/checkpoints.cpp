#include "console/lua/api/api.h"
#include "console/lua/core/bind.h"
#include "console/lua/core/listing.h"
#include "console/lua/reference/columns.h"
#include "console/lua/session/session.h"
#include "protocol/words.h"

// ckpt.list(): the run's checkpoints. The other functions of ckpt are actions.

namespace footplate::lua {
namespace {

/// "1.8950", or "1.8950 @600" where the step of the checkpoint wasn't evaluated before it was saved.
std::string loss_of(const CheckpointSummary& one) {
  if (!one.loss || !one.loss_step) return "";
  return loss_text(*one.loss) + (*one.loss_step == one.step ? "" : " @" + std::to_string(*one.loss_step));
}

int ckpt_list(lua_State* state) {
  const auto checkpoints = session_of(state).look(request::Checkpoints{});
  std::vector<std::vector<std::string>> lines;
  for (const CheckpointSummary& one : checkpoints) {
    const std::string notes = one.tag + (one.best ? (one.tag.empty() ? "best" : ", best") : "");
    lines.push_back({one.name, loss_of(one), size_text(one.bytes), notes});
  }
  push_listing(state, list_of(checkpoints),
               lines.empty() ? "no checkpoint yet; ckpt.save() makes one" : in_columns(lines));
  return 1;
}

constexpr Registration kCheckpointFunctions[] = {
    {.doc = {.name = "ckpt.list",
             .role = Role::view,
             .example = "ckpt.list()",
             .help = "the run's checkpoints, the newest first: name, loss (1.895 @600: of step 600), size, "
                     "tag, best; each has name branch step tag best loss loss_step created bytes"},
     .handler = bound<ckpt_list>},
};

}  // namespace

std::span<const Registration> checkpoint_functions() {
  return kCheckpointFunctions;
}

}  // namespace footplate::lua
