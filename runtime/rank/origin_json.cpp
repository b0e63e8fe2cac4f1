#include "protocol/messages/fields.h"
#include "runtime/rank/origin.h"

namespace footplate {

template <>
struct FieldsOf<Origin> {
  static void list(auto& field, auto& origin) {
    field("checkpoint", origin.checkpoint);
    field("branch", origin.branch);
    field("opens", origin.opens_branch);
  }
};

Json to_json(const Origin& origin) {
  return write_fields(origin);
}
Result<void> read_json(const Json& json, Origin& origin) {
  return read_fields(json, origin);
}

}  // namespace footplate
