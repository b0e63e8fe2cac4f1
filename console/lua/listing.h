#pragma once

#include <lua.hpp>
#include <string>

#include "protocol/json.h"

namespace footplate::lua {

/// Pushes data that a script can walk and that prints as `text`.
void push_listing(lua_State* state, const Json& data, const std::string& text);

/// The three values of __pairs for the table on top of the stack, which is popped.
int push_pairs(lua_State* state);

/// A table's text as a value is shown: without its last newline.
std::string without_newline(std::string text);

/// Pads `text` with blanks to `width` columns (of ASCII).
std::string padded(std::string text, std::size_t width);

}  // namespace footplate::lua
