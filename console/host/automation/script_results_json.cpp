#include "console/host/automation/script_results.h"

#include "protocol/messages/fields.h"

namespace footplate {

template <>
struct FieldsOf<RegisteredRules> {
  static void list(auto& field, auto& registered) { field("rules", registered.rules); }
};

template <>
struct FieldsOf<HandlerTime> {
  static void list(auto& field, auto& time) { field("ran_ms", time.ran_ms); }
};

Result<void> read_json(const Json& json, RegisteredRules& registered) {
  return read_fields(json, registered);
}
Result<void> read_json(const Json& json, HandlerTime& time) {
  return read_fields(json, time);
}

}  // namespace footplate
