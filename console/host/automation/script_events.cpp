#include "console/host/automation/script_events.h"

namespace footplate::host {

Json event_for_scripts(const EventData& data, const LoggedMetrics& latest) {
  if (topic_of(data) != Topic::metrics && topic_of(data) != Topic::eval) return to_json(data);
  Json all = latest.values;
  all.update(to_json(data));
  return all;
}

Json metrics_alone(const Json& event) {
  Json metrics = Json::object();
  for (const auto& [key, value] : event.items())
    if (key == "step" || key.find('/') != std::string::npos) metrics[key] = value;
  return metrics;
}

Json order_event(const OrderReport& report) {
  const Order order = report.order.value_or(Order{});
  Json moved = Json::array();
  if (report.applied)
    for (const Moved& one : report.applied->moved) moved.push_back(to_json(one));
  Json calls = Json::array();
  for (const Call& call : order.calls)
    calls.push_back({{"action", call.action}, {"arguments", call.arguments}});
  return {{"id", report.id},          {"step", report.applied ? Json(report.applied->step) : Json()},
          {"user", order.user},       {"session", order.session},
          {"source", order.source},   {"moved", std::move(moved)},
          {"calls", std::move(calls)}};
}

}  // namespace footplate::host
