#pragma once

#include "protocol/schema.h"

namespace footplate {

// A schema as JSON: what `footplate-rank --schema` prints and the console is sent (docs/protocol.md). Any
// thread.

Json schema_to_json(const Schema& schema);

/// Leaves out a constraint of a kind that a later version knows: the run alone checks it. Error (failed): not
/// what schema_to_json writes.
Result<Schema> schema_from_json(const Json& json);

}  // namespace footplate
