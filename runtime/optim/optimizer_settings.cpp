#include "runtime/optim/optimizer_settings.h"

namespace footplate {

OptimizerSettings OptimizerSettings::from(const Settings& settings) {
  const auto& betas = settings.numbers("optim.betas");
  return {.kind = choice_of<OptimizerKind>(settings, "optim.kind"),
          .weight_decay = settings.number("optim.weight_decay"),
          .beta1 = betas.at(0),
          .beta2 = betas.at(1),
          .eps = settings.number("optim.eps"),
          .momentum = settings.number("optim.momentum"),
          .nesterov = settings.boolean("optim.nesterov")};
}

}  // namespace footplate
