#include "console/client/prompt/input_painter.h"

#include <array>
#include <utility>
#include <vector>

#include "console/client/prompt/edit_terminal.h"
#include "console/client/prompt/highlight.h"
#include "console/client/prompt/margin.h"
#include "console/client/render/text.h"

namespace footplate {
namespace {

constexpr std::string_view kReset = "\x1b[0m";
constexpr std::string_view kSaveCursor =
                               "\x1b"
                               "7",
                           kRestoreCursor =
                               "\x1b"
                               "8";
constexpr std::string_view kDim = "\x1b[90m";

std::string_view style_of(Token token) {
  switch (token) {
    case Token::keyword:
      return "\x1b[35m";
    case Token::number:
      return "\x1b[36m";
    case Token::string:
      return "\x1b[32m";
    case Token::comment:
      return kDim;
    case Token::plain:
      break;
  }
  return "";
}

/// States in which something needs a person, as the prompt names them.
bool is_alarm(std::wstring_view prompt) {
  constexpr std::array<std::wstring_view, 4> kAlarms{L" STALLED", L" RECOVERING", L" RECONNECTING",
                                                     L" NO ANSWER"};
  for (const auto& word : kAlarms)
    if (prompt.find(word) != std::wstring_view::npos) return true;
  return false;
}

std::string moved(std::size_t by, char direction) {
  return by == 0 ? "" : "\x1b[" + std::to_string(by) + direction;
}

/// One cell after the other, from where the prompt begins.
class Painter {
 public:
  /// Rows above `first` have been scrolled away.
  Painter(bool color, std::size_t first) : color_(color), first_(first), row_(first) {}

  void put(wchar_t character, std::string_view style) {
    wraps_ = false;
    if (hidden_) return;
    if (color_ && style != style_) {
      if (!style_.empty()) out_ += kReset;
      out_ += style;
      style_ = style;
    }
    out_ += utf8(std::wstring_view(&character, 1));
  }
  void skip(std::size_t cells) {
    step_down();
    if (!hidden_) out_ += moved(cells, 'C');
  }
  /// The last character has filled its row. What follows is left to the terminal's own wrapping: only so it
  /// knows, when it changes its width, that the rows are one line.
  void filled() { full_ = true; }
  void to_row(std::size_t row) {
    hidden_ = row < first_;
    step_down();
    for (; row_ < row; ++row_) {
      wraps_ = full_ && row_ + 1 == row;
      if (!wraps_) out_ += "\r\x1b[B";
    }
    full_ = false;
  }
  std::string take() {
    step_down();
    if (!style_.empty()) out_ += kReset;
    return std::move(out_);
  }

 private:
  void step_down() {
    if (std::exchange(wraps_, false)) out_ += "\r\x1b[B";
  }

  bool color_;
  std::string_view style_;
  std::size_t first_;
  std::size_t row_;
  bool hidden_ = false;
  bool full_ = false;
  bool wraps_ = false;  ///< the next character goes to the next row by itself
  std::string out_;
};

}  // namespace

std::string paint(const ShownInput& input, bool color) {
  const std::size_t prompt = input.prompt.size();
  const CursorPlace cursor = place_after(input.text.substr(0, input.cursor), prompt, input.width);
  const CursorPlace last = place_after(input.text, prompt, input.width);
  // Where an input is higher than the screen, its end is to be seen as long as the cursor is there.
  const std::size_t first = last.row >= input.height ? last.row + 1 - input.height : 0;
  if ((first > 0 && cursor.row < last.row) || (!color && last.row == 0)) return "";
  Painter painter(color, first);
  const std::string_view bold = is_alarm(input.prompt) ? "\x1b[1;33m" : "\x1b[1m";
  for (std::size_t i = 0; i < prompt; ++i) {
    painter.to_row(i / input.width);
    painter.put(input.prompt[i], bold);
    if (i % input.width + 1 == input.width) painter.filled();
  }
  const std::vector<Token> tokens = highlight(input.text);
  const std::vector<bool> margin = margins(input.text);
  CursorPlace place = place_after(L"", prompt, input.width);
  std::size_t of_margin = 0;
  for (std::size_t i = 0; i < input.text.size(); ++i) {
    const wchar_t character = input.text[i];
    const CursorPlace next = place_after(character, place, input.width);
    const auto cells = static_cast<std::size_t>(columns(character));
    // A wide character that didn't fit stands at the beginning of the row that the cursor is in behind it.
    if (next.row > place.row && next.column == cells && cells > 0) place = {next.row, 0};
    painter.to_row(place.row);
    if (character == L'\t')
      painter.skip(next.row == place.row ? next.column - place.column : 0);
    else if (character != L'\n' &&
             (character < 0x20 || character == 0x7f || (character > 0x7f && !locale_is_utf8())))
      painter.skip(cells);
    else if (margin[i])
      painter.put(kMarginShown[of_margin++ % kMargin.size()], kDim);
    else if (character != L'\n')
      painter.put(character, style_of(tokens[i]));
    if (character != L'\n' && next.row > place.row) painter.filled();
    place = next;
  }
  return std::string(kSaveCursor) + moved(cursor.row - first, 'A') + "\r" + painter.take() +
         std::string(kRestoreCursor);
}

std::string paint_hint(const ShownInput& input, std::wstring_view hint) {
  const CursorPlace cursor = place_after(input.text, input.prompt.size(), input.width);
  const std::size_t room = input.width - cursor.column;
  if (room < 2 || hint.empty()) return "";
  const std::string first_row = in_locale(utf8(hint.substr(0, hint.find(L'\n'))));
  return std::string(kSaveCursor) + std::string(kDim) + cut(first_row, room - 1) + std::string(kReset) +
         std::string(kRestoreCursor);
}

}  // namespace footplate
