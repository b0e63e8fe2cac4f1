#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "protocol/messages/event.h"

namespace footplate {

/// What batch mode prints for an event (topics and data: docs/protocol.md): one plain line without its
/// newline, "2026-11-20T19:00:00Z step 100/1300 · loss 2.3149 · …". Nothing for events that need no line.
/// `steps` is train.steps; 0 where it isn't known. Never throws: fields that are missing are left out.
std::optional<std::string> batch_line(std::chrono::system_clock::time_point time, std::string_view topic,
                                      const Json& data, std::int64_t steps);

std::optional<std::string> batch_line(std::chrono::system_clock::time_point time, const EventData& event,
                                      std::int64_t steps);

/// `text` on one line and without anything that a terminal would act on.
std::string plain(std::string_view text);

}  // namespace footplate
