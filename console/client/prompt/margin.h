#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace footplate {

/// Rows of an input behind its first one begin with blanks, where the terminal shows kMarginShown. They are
/// in the line editor's buffer, which has no prompt of its own for such rows, and in nothing that leaves it.
/// Rows inside of long strings and comments have none.
inline constexpr std::wstring_view kMargin = L"    ";
inline constexpr std::wstring_view kMarginShown = L"... ";

std::wstring with_margin(std::wstring_view text);
std::wstring without_margin(std::wstring_view text);

/// Whether a row that begins behind `text` and a newline gets one.
bool gets_margin(std::wstring_view text);

/// Which characters of `text` are of a margin.
std::vector<bool> margins(std::wstring_view text);

}  // namespace footplate
