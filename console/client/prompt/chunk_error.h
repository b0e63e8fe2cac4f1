#pragma once

#include <string>

#include "protocol/json.h"

namespace footplate {

/// How the client names what is typed, in the messages of Lua.
inline constexpr const char* kChunkName = "input";

/// An error for the person who typed `code`: the message, and beneath it the line with a caret where both are
/// known. `line` is 0 where it isn't.
std::string chunk_error_text(const Error& error, std::int64_t line, const std::string& code);

}  // namespace footplate
