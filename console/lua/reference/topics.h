#pragma once

#include <span>
#include <string_view>

namespace footplate {

/// A name that a script has besides the schema's: one of the API's own, or of Lua's libraries.
struct Topic {
  const char* name;  ///< "orders", "run.wait", "string.format"
  const char* help;  ///< one line; of Lua's own names, what they are
};

/// The API's own, in the order that help() lists them.
std::span<const Topic> api_topics();

/// Lua's own, as far as a session has them.
std::span<const Topic> lua_topics();

}  // namespace footplate
