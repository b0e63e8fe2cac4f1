#pragma once

#include "protocol/messages/event.h"

namespace footplate::host {

/// What a rule's function and run.wait get of an event: what it tells. Logged metrics and evaluations come
/// with all that was measured last, `latest`.
Json event_for_scripts(const EventData& data, const LoggedMetrics& latest);

/// Of what event_for_scripts() gives, the metrics alone: what run.stop_when() gets, whatever has happened.
Json metrics_alone(const Json& event);

/// What on("order") and run.wait{ event = "order" } get of an applied order.
Json order_event(const OrderReport& report);

}  // namespace footplate::host
