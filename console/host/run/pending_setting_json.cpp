#include "console/host/run/pending_setting.h"
#include "protocol/messages/fields.h"

namespace footplate {

template <>
struct FieldsOf<PendingSetting> {
  static void list(auto& field, auto& pending) {
    field("name", pending.name);
    field("value", pending.value);
    field("at_start", pending.at_start);
    field("source", pending.source);
  }
};

Json to_json(const PendingSetting& pending) {
  return write_fields(pending);
}
Result<void> read_json(const Json& json, PendingSetting& pending) {
  return read_fields(json, pending);
}

}  // namespace footplate
