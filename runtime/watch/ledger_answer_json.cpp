#include "protocol/messages/fields.h"
#include "runtime/watch/ledger_answer.h"

namespace footplate {

template <>
struct FieldsOf<LedgerLine> {
  static void list(auto& field, auto& line) {
    field("sequence", line.sequence);
    field("generation", line.generation);
    field("phase", line.phase);
    field("kind", line.kind);
    field("type", line.type);
    field("elements", line.elements);
    field("variant", line.variant);
    field("step", line.step);
    field("name", line.name);
    field("digest", line.digest);
    field("running", line.running);
    field("age_s", line.age_s);
  }
};

template <>
struct FieldsOf<LedgerAnswer> {
  static void list(auto& field, auto& answer) {
    field("newest", answer.newest);
    field("entries", answer.entries);
  }
};

Json to_json(const LedgerAnswer& answer) {
  return write_fields(answer);
}
Result<void> read_json(const Json& json, LedgerAnswer& answer) {
  return read_fields(json, answer);
}

}  // namespace footplate
