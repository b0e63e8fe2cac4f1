#include "runtime/schema/rows.h"
#include "runtime/schema/settings_groups.h"

namespace footplate {
namespace {

std::vector<SettingRow> guard_rows() {
  return {
      {.name = "guard.check_every",
       .value = 100,
       .unit = "steps",
       .range = {.min = 0, .max = kManySteps},
       .role = Role::operate,
       .aliases = {"guard.every", "check_every"},
       .help = "The ranks compare hashes of their state, a slice at each step, so that this many steps cover "
               "all of it. 0 = never",
       .example = "guard.check_every = 50"},
      {.name = "guard.on_mismatch",
       .value = "warn",
       .choices = {"warn", "repair", "stop"},
       .help = "Decides what happens when the ranks' hashes of their state differ. warn: a warning names "
               "the ranks. repair: all take the state of a rank of the majority; two ranks have no "
               "majority, which is a warning. stop: the run ends resumable and without a save",
       .example = "guard.on_mismatch = \"repair\""},
      {.name = "guard.nonfinite",
       .value = "skip",
       .choices = {"skip", "pause", "stop"},
       .help = "Decides what happens after a step whose gradients or loss aren't finite. Such a step "
               "writes nothing. skip: training goes on. pause: training pauses. stop: the run fails, as "
               "it does in any case after three of them in a row",
       .example = "guard.nonfinite = \"pause\""},
  };
}

}  // namespace

void add_guard_settings(std::vector<SettingSpec>& table) {
  add(table, guard_rows());
}

}  // namespace footplate
