#pragma once

#include <string>
#include <string_view>

namespace footplate {

/// `text` without anything that a terminal would act on, but newlines and tabs: ESC becomes \x1b.
std::string printable(std::string_view text);

/// UTF-8 to code points and back; what isn't UTF-8 becomes U+FFFD.
std::wstring wide(std::string_view utf8);
std::string utf8(std::wstring_view text);

/// Columns of one character on a terminal, at least 0; those that libedit shows as ^X take 2.
int columns(wchar_t character);

/// At most `width` columns of one line of UTF-8; what was cut shows as "…".
std::string cut(std::string_view utf8_line, std::size_t width);

/// A row with blanks in place of its tabs, as a terminal shows it.
std::string with_blanks(std::string_view utf8_line);

/// Rows of columns that are wider than `width`, broken at blanks: what their last column goes on with stands
/// beneath it. Rows without columns (two blanks in a row) stay as they are, and so does a text of one row.
std::string fit_columns(std::string_view utf8_text, std::size_t width);

/// `text` in what the locale can show: where that isn't UTF-8, · → … become ASCII and other characters "?".
/// Needs setlocale(LC_CTYPE, "").
std::string in_locale(std::string_view utf8_text);

/// Whether the locale's characters are UTF-8.
bool locale_is_utf8();

}  // namespace footplate
