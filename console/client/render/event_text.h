#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "protocol/json.h"

namespace footplate {

/// An event for people: one line without its newline, or nothing for events that need none. Topics and data
/// as in docs/protocol.md. Never throws: what is missing or of another type is left out.
std::optional<std::string> event_text(const std::string& topic, const Json& data);

/// "log.every 50 -> 10, optim.lr 1e-3 -> 5e-4, eval.now()": what an order did; of one that hasn't been
/// applied, what it asks for.
std::string order_effect(const Json& report);

/// Who ordered it: "ann", or "" where the report lacks it.
std::string order_user(const Json& report);
std::string order_session(const Json& report);

/// What a report's or an event's error says: text, or an object with a message.
std::string error_message(const Json& data);

}  // namespace footplate
