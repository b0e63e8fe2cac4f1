#pragma once

#include <memory>

#include "console/client/prompt/terminal.h"

namespace footplate {

/// A terminal that moves its cursor: libedit, with what libedit lacks (docs/architecture.md, "The prompt").
std::unique_ptr<Terminal> make_edit_terminal(Background& background);

/// Where the terminal's cursor is after `text` behind a prompt of `prompt_columns`, on lines of `width`.
struct CursorPlace {
  std::size_t row = 0;  ///< 0: the prompt's
  std::size_t column = 0;
};
CursorPlace place_after(std::wstring_view text, std::size_t prompt_columns, std::size_t width);
/// The same after one character at `place`.
CursorPlace place_after(wchar_t character, CursorPlace place, std::size_t width);

}  // namespace footplate
