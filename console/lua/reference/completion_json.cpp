#include "console/lua/reference/completion.h"
#include "protocol/messages/fields.h"

namespace footplate {

template <>
struct FieldsOf<Completion> {
  static void list(auto& field, auto& completion) {
    field("text", completion.text);
    field("kind", completion.kind);
    field("note", completion.note);
  }
};

template <>
struct FieldsOf<Completions> {
  static void list(auto& field, auto& completions) {
    field("start", completions.start);
    field("items", completions.items);
    field("in_text", completions.in_text);
  }
};

Json to_json(const Completions& completions) {
  return write_fields(completions);
}

}  // namespace footplate
