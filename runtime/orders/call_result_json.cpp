#include "protocol/messages/fields.h"
#include "protocol/overloaded.h"
#include "runtime/orders/call_result.h"

namespace footplate {

template <>
struct FieldsOf<DoneAtStep> {
  static void list(auto& field, auto& done) { field("step", done.step); }
};

template <>
struct FieldsOf<StateRepaired> {
  static void list(auto& field, auto& repaired) {
    field("step", repaired.step);
    field("source", repaired.source);
  }
};

template <>
struct FieldsOf<CommunicatorsRenewed> {
  static void list(auto& field, auto& renewed) {
    field("step", renewed.step);
    field("seconds", renewed.seconds);
  }
};

template <>
struct FieldsOf<MeasurementBegun> {
  static void list(auto& field, auto& begun) {
    field("first", begun.first);
    field("steps", begun.steps);
    field("last", begun.last);
  }
};

Result<void> read_json(const Json& json, StateRepaired& repaired) {
  return read_fields(json, repaired);
}

Json to_json(const CallResult& result) {
  return std::visit(Overloaded{[](const std::monostate&) { return Json(); },
                               [](const TaskAnswer& answer) { return answer.value; },
                               [](const auto& one) { return fields::write(one); }},
                    result);
}

}  // namespace footplate
