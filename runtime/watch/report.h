#pragma once

#include <variant>

#include "protocol/messages/event.h"
#include "protocol/messages/link_messages.h"

namespace footplate {

/// What rank 0 reports of a run: events go to the records and to the console, the others to the console
/// alone.
using Report = std::variant<EventData, SettingsUpdate, RanksAnswer>;

}  // namespace footplate
