#pragma once

#include <string>
#include <string_view>

namespace footplate::lua {

/// A syntax error of Lua, "config:3: unexpected symbol near '='", with what its author may have meant: what
/// other languages write, a comma too many or too few, a file that isn't Lua. `code` is the whole chunk. As
/// it is where nothing is known to say.
std::string with_syntax_advice(const std::string& message, std::string_view code);

/// "3: train.steps = 2,000 gives two values …": Lua would take the first value and forget the other. Empty
/// where no line does that. Looks at lines, not at what they mean: strings over several lines may hide some.
std::string surplus_value(std::string_view code);

}  // namespace footplate::lua
