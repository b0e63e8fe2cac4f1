#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "protocol/json.h"

namespace footplate {

// How footplate words what happens in a run: the same for batch lines, the prompt, `footplate watch` and the
// report. Topics and data as in docs/protocol.md. None of these throws: what is missing or of another type is
// left out. Any thread.

/// An event as one line without its newline, "step 100/1300 · loss 2.3149 · …"; nothing for events that need
/// none. What somebody wrote (a reason, a job's line) is in it as it is: see printable() and plain().
/// `steps`: train.steps; 0 where it isn't known.
std::optional<std::string> event_line(std::string_view topic, const Json& data, std::int64_t steps = 0);

/// Whether event_line words this topic, though it may have no line for each of its events.
bool is_known_topic(std::string_view topic);

/// "log.every 50 -> 10, optim.lr 1e-3 -> 5e-4, eval.now()": what an order did; of one that hasn't been
/// applied, what it asks for.
std::string order_effect(const Json& report);

/// Who ordered it: "ann", or "" where the report lacks it.
std::string order_user(const Json& report);
std::string order_session(const Json& report);

/// What a report's or an event's error says: text, or an object with a message.
std::string error_message(const Json& data);

}  // namespace footplate
