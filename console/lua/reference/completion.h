#pragma once

#include <string>
#include <string_view>

#include "console/lua/reference/function_docs.h"
#include "protocol/schema.h"
#include "protocol/settings.h"

namespace footplate {

/// What may follow `code` at its end, as docs/protocol.md has the answer to `complete`: {"start": byte where
/// the unfinished name begins, "items": [{"text","kind","note"}]}. From names alone; nothing is evaluated.
Json completions(const Schema& schema, const Settings& settings, FunctionDocs functions,
                 std::string_view code);

}  // namespace footplate
