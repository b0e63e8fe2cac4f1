#pragma once

#include <string>

#include "protocol/value.h"

namespace footplate::lua {

class Session;

/// Asks the console for the computed settings (optim.lr), which move without an order. Ends the script where
/// its time is up.
void renew_computed(Session& session);

/// What a script reads: staged, else in force; a computed one as it is now.
const Value& value_read(Session& session, const std::string& name);

}  // namespace footplate::lua
