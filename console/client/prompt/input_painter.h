#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace footplate {

/// What the line editor has on the screen: a prompt, and behind it what is typed.
struct ShownInput {
  std::wstring_view prompt;
  std::wstring_view text;
  std::size_t cursor = 0;  ///< characters of `text` before it
  std::size_t width = 80;
  std::size_t height = 24;
};

/// What has to be sent so that the same characters stand there in colours (where `color`), and rows behind
/// the first one with kMarginShown: libedit shows neither. The cursor stays where it is. Empty: nothing is to
/// be painted, as where the input is higher than the screen.
std::string paint(const ShownInput& input, bool color);

/// What shows `hint` dim behind the text whose end the cursor is at, as far as the row has room for it.
std::string paint_hint(const ShownInput& input, std::wstring_view hint);

}  // namespace footplate
