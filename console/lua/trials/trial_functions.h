#pragma once

#include <span>

#include "console/lua/session/registration.h"

namespace footplate::lua {

std::span<const Registration> try_functions();         ///< try
std::span<const Registration> nccl_trial_functions();  ///< nccl.try, nccl.tune

}  // namespace footplate::lua
