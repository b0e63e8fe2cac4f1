#pragma once

#include "protocol/messages/fields.h"
#include "protocol/messages/run_status.h"

namespace footplate {

/// For those who read it as a part of something else.
template <>
struct FieldsOf<CollectiveStatus> {
  static void list(auto& field, auto& collective) {
    field("sequence", collective.sequence);
    field("kind", collective.kind);
    field("elements", collective.elements);
    field("running", collective.running);
    field("age_s", collective.age_s);
  }
};

}  // namespace footplate
