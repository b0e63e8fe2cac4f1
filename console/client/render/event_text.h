#pragma once

#include <optional>
#include <string>

#include "protocol/event_line.h"

namespace footplate {

/// An event for somebody at a terminal: event_line (protocol/event_line.h), who comes and goes, and what
/// nccl.measure has found as a table of several lines. Without its last newline; nothing for events that need
/// none. Never throws.
std::optional<std::string> event_text(const EventData& data);

/// "ann#3": a session of ann's, which the console calls s3. "ann" for a rule, a job and one that isn't named.
std::string session_text(const std::string& user, const std::string& session);

}  // namespace footplate
