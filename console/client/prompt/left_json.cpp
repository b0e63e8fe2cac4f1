#include "console/client/prompt/left_json.h"

#include "protocol/json_fields.h"
#include "protocol/messages/fields.h"

namespace footplate {

template <>
struct FieldsOf<Left> {
  static void list(auto& field, auto& left) {
    field("time", left.time);
    field("first_start", left.first_start);
    field("step", left.step);
    field("loss", left.loss);
  }
};

Json to_json(const Left& left) {
  return write_fields(left);
}

Left left_from_json(const Json& json) {
  Left left = read_tolerantly<Left>(json);
  left.loss = number_of(json, "loss");
  return left;
}

}  // namespace footplate
