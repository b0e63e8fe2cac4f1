#include "protocol/messages/order_report.h"

#include "protocol/messages/fields.h"

namespace footplate {

template <>
struct FieldsOf<StartedCall> {
  static void list(auto& field, auto& call) {
    field("call", call.call);
    field("action", call.action);
  }
};

template <>
struct FieldsOf<OrderReport> {
  static void list(auto& field, auto& report) {
    field("state", report.state);
    field.unless_empty("id", report.id);
    field("ref", report.ref);
    field("step", report.step);
    field("applied", report.applied);
    if (report.applied)
      field("calls", report.calls);
    else
      field.unless_empty("calls", report.calls);
    field.unless_empty("error", report.error);
    field.unless_empty("text", report.text);
    field("order", report.order);
    field.unless_empty("timed_out", report.timed_out);
    field.unless_empty("silent", report.silent);
  }
};

template <>
struct FieldsOf<CallReport> {
  static void list(auto& field, auto& report) {
    field("order", report.order);
    field("call", report.call);
    field("action", report.action);
    field("state", report.state);
    field.unless_empty("result", report.result);
    field.unless_empty("error", report.error);
    field.unless_empty("timed_out", report.timed_out);
  }
};

Json to_json(const OrderReport& report) {
  Json json = write_fields(report);
  if (report.applied && report.calls.empty()) json["calls"] = Json::array();
  return json;
}
Result<void> read_json(const Json& json, OrderReport& report) {
  return read_fields(json, report);
}
Json to_json(const CallReport& report) {
  return write_fields(report);
}
Result<void> read_json(const Json& json, CallReport& report) {
  return read_fields(json, report);
}

}  // namespace footplate
