#pragma once

#include <string>

#include "protocol/json.h"

namespace footplate {

/// "kjv-3:48211> ", "kjv-3:48211 PAUSED view> ": where the run is and what this session may do. `status` is
/// the run's, with what is known so far.
std::string prompt_text(const std::string& run, const Json& status, const std::string& role, bool connected);

}  // namespace footplate
