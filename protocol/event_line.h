#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "protocol/messages/event.h"

namespace footplate {

// How footplate words what happens in a run: the same for batch lines, the prompt, `footplate watch` and the
// report. None of these throws: what is missing is left out. Any thread.

/// An event as one line without its newline, "step 100/1300 · loss 2.3149 · …"; nothing for events that need
/// none. What somebody wrote (a reason, a job's line) is in it as it is: see printable() and plain().
/// `steps`: train.steps; 0 where it isn't known.
std::optional<std::string> event_line(const EventData& data, std::int64_t steps = 0);

/// The same, of a topic and data as in docs/protocol.md. Nothing for a topic that this build doesn't know,
/// and for data that can't be read.
std::optional<std::string> event_line(std::string_view topic, const Json& data, std::int64_t steps = 0);

/// "log.every 50 -> 10, optim.lr 1e-3 -> 5e-4, eval.now()": what an order did; of one that hasn't been
/// applied, what it asks for.
std::string order_effect(const OrderReport& report);

/// Who gave it, for people: "ann", "ann, rule 3"; "" where the report lacks it.
std::string order_giver(const OrderReport& report);

}  // namespace footplate
