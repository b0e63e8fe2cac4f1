#pragma once

#include <string>

namespace footplate {

/// The chunk that returns what the text is as an expression. A "=" before it is left out, as at Lua's own
/// prompt.
inline std::string as_expression(const std::string& text) {
  return "return " + (text.starts_with('=') ? text.substr(1) : text);
}

}  // namespace footplate
