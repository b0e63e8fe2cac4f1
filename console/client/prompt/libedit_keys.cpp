#include <unistd.h>

#include <algorithm>
#include <chrono>

#include "console/client/prompt/libedit_terminal.h"
#include "console/client/prompt/margin.h"
#include "console/client/render/text.h"

// What the keys do that libedit lacks or does differently.

namespace footplate {
namespace {

constexpr std::wstring_view kPasteEnd = L"\x1b[201~";
constexpr std::size_t kLongestPaste = 256 << 10;  ///< characters: the longest chunk that a console takes
constexpr std::size_t kMostListed = 100;          ///< completions

}  // namespace

void EditTerminal::push(wchar_t key) {
  const std::array<wchar_t, 2> text{key, L'\0'};
  ::el_wpush(edit_, text.data());
}

/// From any row: a whole input is taken, one that goes on gets another row. An empty last row ends it always.
unsigned char EditTerminal::enter() {
  const std::wstring text = buffer();
  const LineInfoW* line = ::el_wline(edit_);
  const bool blank_row = text.ends_with(L'\n') || text.ends_with(L'\n' + std::wstring(kMargin));
  if (!blank_row && !background_.is_complete(utf8(without_margin(text)))) {
    ::el_winsertstr(edit_, gets_margin(before_cursor()) ? (L'\n' + std::wstring(kMargin)).c_str() : L"\n");
    return CC_REFRESH;
  }
  ::el_cursor(edit_, static_cast<int>(line->lastchar - line->cursor));
  push(kAcceptKey);
  return CC_REFRESH;
}

unsigned char EditTerminal::cancel() {
  if (buffer().empty() && !background_.nothing_to_cancel()) return CC_NORM;
  cancelled_ = true;
  const LineInfoW* line = ::el_wline(edit_);
  ::el_cursor(edit_, static_cast<int>(line->lastchar - line->cursor));
  push(kAcceptKey);
  return CC_REFRESH;
}

unsigned char EditTerminal::end_of_input() {
  const LineInfoW* line = ::el_wline(edit_);
  if (line->buffer == line->lastchar) {
    end_ = true;
    hide();
    return CC_EOF;
  }
  if (line->cursor == line->lastchar) return CC_ERROR;
  ::el_cursor(edit_, 1);
  ::el_deletestr(edit_, 1);
  return CC_REFRESH;
}

/// Leaves out the rest of a paste, with its end mark. The kernel may have dropped the mark at Ctrl-C: then
/// this ends a second after the last of what only a paste sends at once, in a pause between keys. A signal
/// ends it, too. The background goes on meanwhile.
void EditTerminal::skip_paste() {
  using namespace std::chrono_literals;
  using Clock = std::chrono::steady_clock;
  constexpr std::string_view kEndBytes = "\x1b[201~";
  constexpr ssize_t kLongestKey = 8;  ///< bytes: an arrow key with its modifiers has 6
  constexpr auto kAfterPaste = 1000ms;
  constexpr auto kBetweenKeys = 50ms;
  std::string last;
  decoding_ = {};
  const auto ends_in_block = [&] {
    while (block_used_ < block_size_) {
      last += block_[block_used_++];
      if (last.ends_with(kEndBytes)) return true;  // keys follow
    }
    last.erase(0, last.size() - std::min(last.size(), kEndBytes.size()));
    return false;
  };
  if (ends_in_block()) return;
  auto end = Clock::now() + kAfterPaste;
  for (auto now = Clock::now(); now < end; now = Clock::now()) {
    const Event event =
        next_event(/*with_keys=*/true, std::chrono::ceil<std::chrono::milliseconds>(end - now));
    if (event == Event::interrupt || event == Event::ended || background_.over()) return;
    if (event != Event::keys) continue;
    const ssize_t got = ::read(STDIN_FILENO, block_.data(), block_.size());
    if (got <= 0) return;  // whoever reads next sees it, too
    end = std::max(end, Clock::now() + (got > kLongestKey ? kAfterPaste : kBetweenKeys));
    block_used_ = 0;
    block_size_ = static_cast<std::size_t>(got);
    if (ends_in_block()) return;
  }
}

/// What stands between the marks of a bracketed paste, as one piece: nothing in it is a key.
unsigned char EditTerminal::paste() {
  std::wstring text;
  std::wstring last;  // as long as the end mark
  pasting_ = true;
  interrupted_ = false;
  while (last != kPasteEnd) {
    wchar_t character = 0;
    const bool got = ::el_wgetc(edit_, &character) == 1;
    pasting_ = got && !interrupted_;
    if (!got) return CC_EOF;
    if (interrupted_) {
      skip_paste();
      if (!ended_ && !background_.over()) return cancel();
      hide();
      return CC_EOF;
    }
    if (text.size() < kLongestPaste + kPasteEnd.size()) text += character;
    if (last.size() == kPasteEnd.size()) last.erase(0, 1);
    last += character;
  }
  pasting_ = false;
  if (text.ends_with(kPasteEnd)) text.resize(text.size() - kPasteEnd.size());
  for (std::size_t at = 0; (at = text.find(L"\r\n", at)) != std::wstring::npos;) text.erase(at, 1);
  std::replace(text.begin(), text.end(), L'\r', L'\n');
  std::erase_if(text, [](wchar_t c) { return (c < 0x20 && c != L'\n' && c != L'\t') || c == 0x7f; });
  while (!text.empty() && text.back() == L'\n') text.pop_back();
  // Its rows get margins by what they are in, which began before it.
  const std::wstring before = before_cursor();
  const std::wstring after = with_margin(without_margin(before) + text);
  if (after.starts_with(before) && after.size() > before.size())
    ::el_winsertstr(edit_, after.c_str() + before.size());
  return CC_REFRESH;
}

unsigned char EditTerminal::complete() {
  const std::string typed = utf8(without_margin(before_cursor()));
  const Completions completions = background_.complete(typed);
  if (completions.items.empty() || completions.start > typed.size()) return CC_REFRESH_BEEP;
  std::string common = completions.items.front().text;
  for (const auto& item : completions.items) {
    const auto differ = std::mismatch(common.begin(), common.end(), item.text.begin(), item.text.end());
    common.erase(differ.first, common.end());
  }
  const std::size_t length = typed.size() - completions.start;
  if (common.size() > length && common.compare(0, length, typed, completions.start) == 0) {
    ::el_winsertstr(edit_, wide(common.substr(length)).c_str());
    if (completions.items.size() == 1) return CC_REFRESH;
  } else if (completions.items.size() == 1 && common.size() == length) {
    show(completions.items.front().text + "  " + completions.items.front().note, Kind::event);
    return CC_NORM;
  }
  if (common.size() <= length) list(completions);
  return CC_REFRESH;
}

void EditTerminal::list(const Completions& completions) {
  std::size_t longest = 0;
  for (const auto& item : completions.items) longest = std::max(longest, item.text.size());
  std::string text;
  const std::size_t shown = std::min(completions.items.size(), kMostListed);
  for (std::size_t i = 0; i < shown; ++i) {
    const auto& item = completions.items[i];
    text += cut(item.text + std::string(longest - item.text.size() + 2, ' ') + item.note, width() - 1) + "\n";
  }
  if (shown < completions.items.size())
    text += "… and " + std::to_string(completions.items.size() - shown) + " more\n";
  show(text, Kind::talk);
}

/// A row up inside an input of several lines; from its first row, to the history.
unsigned char EditTerminal::up() {
  const LineInfoW* line = ::el_wline(edit_);
  const wchar_t* start = line->cursor;
  while (start > line->buffer && start[-1] != L'\n') --start;
  if (start == line->buffer) {
    push(kPreviousKey);
    return CC_NORM;
  }
  const wchar_t* above = start - 1;
  while (above > line->buffer && above[-1] != L'\n') --above;
  return to_row(*line, above, static_cast<std::size_t>(line->cursor - start));
}

unsigned char EditTerminal::down() {
  const LineInfoW* line = ::el_wline(edit_);
  const wchar_t* start = line->cursor;
  while (start > line->buffer && start[-1] != L'\n') --start;
  const wchar_t* below = std::find(line->cursor, line->lastchar, L'\n');
  if (below == line->lastchar) {
    push(kNextKey);
    return CC_NORM;
  }
  return to_row(*line, below + 1, static_cast<std::size_t>(line->cursor - start));
}

unsigned char EditTerminal::home() {
  const LineInfoW* line = ::el_wline(edit_);
  const wchar_t* start = line->cursor;
  while (start > line->buffer && start[-1] != L'\n') --start;
  const auto from = static_cast<std::size_t>(start - line->buffer);
  const std::vector<bool> margin = margins(buffer());
  return to_row(*line, start, from < margin.size() && margin[from] ? kMargin.size() : 0);
}

unsigned char EditTerminal::end() {
  if (accept_hint()) return CC_REFRESH;
  const LineInfoW* line = ::el_wline(edit_);
  return to_row(*line, std::find(line->cursor, line->lastchar, L'\n'), 0);
}

unsigned char EditTerminal::search() {
  searching_ = true;
  push(kSearchKey);
  return CC_NORM;
}

/// A row's margin goes as a whole, with the end of the row above it.
unsigned char EditTerminal::erase() {
  const std::wstring before = before_cursor();
  if (before.empty()) return CC_ERROR;
  const bool at_margin = margins(before).back() && before.ends_with(L'\n' + std::wstring(kMargin));
  ::el_deletestr(edit_, at_margin ? static_cast<int>(kMargin.size()) + 1 : 1);
  return CC_REFRESH;
}

unsigned char EditTerminal::right() {
  if (accept_hint()) return CC_REFRESH;
  const LineInfoW* line = ::el_wline(edit_);
  if (line->cursor == line->lastchar) return CC_ERROR;
  ::el_cursor(edit_, 1);
  return CC_CURSOR;
}

/// At the end of the text: what the hint goes on with. The key that calls it has taken the hint away.
bool EditTerminal::accept_hint() {
  const LineInfoW* line = ::el_wline(edit_);
  if (!has_color() || !hints_on_ || line->cursor != line->lastchar) return false;
  const std::wstring text = buffer();
  const std::string rest = hint_for(text).rest;
  if (rest.empty()) return false;
  const std::wstring whole = with_margin(without_margin(text) + wide(rest));
  ::el_winsertstr(edit_, whole.c_str() + std::min(text.size(), whole.size()));
  return true;
}

unsigned char EditTerminal::to_row(const LineInfoW& line, const wchar_t* row_start, std::size_t column) {
  const wchar_t* row_end = std::find(row_start, line.lastchar, L'\n');
  const wchar_t* target = std::min(row_start + column, row_end);
  ::el_cursor(edit_, static_cast<int>(target - line.cursor));
  return CC_REFRESH;
}

}  // namespace footplate
