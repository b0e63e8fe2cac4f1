#pragma once

#include <string>

namespace footplate {

/// Whether more lines belong to this chunk of Lua: it is neither an expression nor statements, and reading it
/// as one of them fails only at its end. A string that is open at the end of its line can't be continued.
bool is_incomplete_chunk(const std::string& text);

}  // namespace footplate
