#pragma once

#include "protocol/messages/run_result.h"
#include "protocol/settings.h"

namespace footplate {

// What a start's configuration is made from, for `footplate run`, which makes it, and for ckpt.load, which
// says before what it will be.

/// The settings of an earlier start for the next one. What was on the earlier command line says so and no
/// longer counts as this one's: it must not win over what was changed live since.
Settings as_of_start(const Settings& settings, int start);

/// The settings of the start that ckpt.load has asked for. `load` is what result.json says of it: those that
/// apply at a start are as the checkpoint has them, unless a later command line or the environment says
/// otherwise; and what the call sets, or keeps, is as it says.
Settings with_loaded_settings(const Settings& settings, const Schema& schema, const LoadTarget& load);

}  // namespace footplate
