#pragma once

#include <string_view>
#include <vector>

namespace footplate {

/// What a character of typed Lua belongs to.
enum class Token : unsigned char { plain, keyword, number, string, comment };

/// One for each character of `lua`, which may be unfinished. A newline within a long string or comment is
/// its.
std::vector<Token> highlight(std::wstring_view lua);

}  // namespace footplate
