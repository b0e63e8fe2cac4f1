#pragma once

#include <string>
#include <vector>

#include "console/lua/session/stage.h"

namespace footplate::lua {

/// What a person is asked about before `order` is sent, each a line: dangerous actions, values outside what
/// is usual, numbers that change by more than ten times, and what makes the run end sooner. Without what was
/// said to be forced; nothing where `role` doesn't allow the order anyway.
std::vector<std::string> questions(const StagedOrder& order, const Schema& schema, const Settings& settings,
                                   Role role);

}  // namespace footplate::lua
