#pragma once

#include <optional>
#include <string>

#include "protocol/messages/run_status.h"
#include "protocol/schema.h"

namespace footplate {

/// How a console is reached: `silent` is connected, and doesn't answer.
enum class LinkState { connected, silent, lost };

/// "kjv-3:48211> ", "kjv-3:48211 PAUSED view> ": where the run is and what this session may do. `status` is
/// the run's; nothing: it isn't known yet.
std::string prompt_text(const std::string& run, const std::optional<RunStatus>& status, Role role,
                        LinkState link);

}  // namespace footplate
