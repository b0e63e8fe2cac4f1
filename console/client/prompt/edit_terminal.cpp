#include "console/client/prompt/edit_terminal.h"

#include <histedit.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cwchar>
#include <utility>
#include <vector>

#include "console/client/prompt/input_history.h"
#include "console/client/prompt/input_painter.h"
#include "console/client/prompt/margin.h"
#include "console/client/prompt/pager.h"
#include "console/client/render/text.h"
#include "console/client/runs/run_index.h"

namespace footplate {
namespace {

// Keys of our own for libedit's functions that can only be reached by a key: nobody types these.
constexpr wchar_t kCancelKey = L'\x1c';
constexpr wchar_t kAcceptKey = L'\x1d';
constexpr wchar_t kPreviousKey = L'\x1e';
constexpr wchar_t kNextKey = L'\x1f';
constexpr wchar_t kSearchKey = L'\x1a';  // Ctrl-Z never comes as a key: it is a signal
constexpr char kEscape = '\x1b';

constexpr const char* kPasteOn = "\x1b[?2004h";
constexpr const char* kPasteOff = "\x1b[?2004l";
constexpr std::wstring_view kPasteEnd = L"\x1b[201~";
constexpr std::size_t kLongestPaste = 256 << 10;  ///< characters: the longest chunk that a console takes
constexpr std::size_t kMostListed = 100;          ///< completions
constexpr std::size_t kMostDeferred = 1000;       ///< blocks of text, while a pager has the terminal

/// libedit's line editor. More than 30 methods: libedit calls one for each key that is bound.
class EditTerminal final : public Terminal {
 public:
  explicit EditTerminal(Background& background);
  ~EditTerminal() override;

  Input read() override;
  void show(std::string_view text, Kind kind) override;
  void set_prompt(const std::string& prompt) override;
  void remember(const std::string& input) override;
  bool is_interactive() const override { return true; }
  void set_live(std::string_view text) override;
  void page(std::string_view text) override;
  void show_hints(bool on) override { hints_on_ = on; }

 private:
  using Key = unsigned char (EditTerminal::*)();
  template <Key key>
  static unsigned char bound(EditLine* edit, int) {
    return (of(edit)->*key)();
  }
  static EditTerminal* of(EditLine* edit);
  static int next_key(EditLine* edit, wchar_t* key);
  static wchar_t* prompt_of(EditLine* edit);

  void bind_keys();
  template <Key key>
  void bind(const wchar_t* name, std::initializer_list<const wchar_t*> sequences);
  bool next_byte(char& byte);
  int decode(char byte, wchar_t* key);

  // Keys
  unsigned char enter();
  unsigned char cancel();
  unsigned char end_of_input();
  unsigned char paste();
  unsigned char complete();
  unsigned char up();
  unsigned char down();
  unsigned char home();
  unsigned char end();
  unsigned char search();
  unsigned char erase();
  unsigned char right();
  unsigned char to_row(const LineInfoW& line, const wchar_t* row_start, std::size_t column);
  void list(const Completions& completions);

  std::wstring buffer() const;
  std::wstring before_cursor() const;
  void push(wchar_t key);
  void take_keys(bool on);
  void hide();
  void redraw();
  ShownInput shown_input() const;
  TypingHint hint_for(const std::wstring& text);
  void decorate();
  void take_hint_away();
  bool accept_hint();
  void write_lines(std::string_view text);
  void draw_live();
  void clear_live();
  void resized() override;
  void suspend() override;

  EditLine* edit_;
  HistoryW* history_;
  InputHistory entries_;
  std::wstring prompt_;
  bool editing_ = false;  ///< the prompt is on the screen
  bool cancelled_ = false;
  bool end_ = false;
  bool pasting_ = false;
  bool hints_on_ = true;
  TypingHint hint_;            ///< on the screen, behind the cursor
  std::string painted_;  ///< what was last sent to colour the input; empty: it isn't coloured as it is now
  std::string live_;     ///< below all lines
  std::size_t live_rows_ = 0;
  bool paging_ = false;
  std::vector<std::pair<std::string, Kind>> deferred_;  ///< until the pager ends
  bool searching_ = false;          ///< in libedit's search, which takes an arrow key for ESC and text
  std::array<char, 4096> block_{};  ///< read and not yet used
  std::size_t block_size_ = 0;
  std::size_t block_used_ = 0;
  mbstate_t decoding_{};
};

EditTerminal::EditTerminal(Background& background)
    : Terminal(background),
      edit_(::el_init("footplate", stdin, stdout, stderr)),
      history_(::history_winit()),
      entries_(state_folder()) {
  HistEventW event{};
  ::history_w(history_, &event, H_SETSIZE, static_cast<int>(InputHistory::kMostEntries));
  for (const auto& entry : entries_.entries()) ::history_w(history_, &event, H_ENTER, with_margin(wide(entry)).c_str());
  ::el_wset(edit_, EL_CLIENTDATA, this);
  ::el_wset(edit_, EL_PROMPT, &EditTerminal::prompt_of);
  ::el_wset(edit_, EL_EDITOR, L"emacs");
  ::el_wset(edit_, EL_SIGNAL, 0);
  ::el_wset(edit_, EL_HIST, &::history_w, history_);
  ::el_wset(edit_, EL_GETCFN, &EditTerminal::next_key);
  bind_keys();
  take_keys(true);
}

EditTerminal::~EditTerminal() {
  take_keys(false);
  ::el_end(edit_);
  ::history_wend(history_);
}

EditTerminal* EditTerminal::of(EditLine* edit) {
  void* self = nullptr;
  ::el_wget(edit, EL_CLIENTDATA, &self);
  return static_cast<EditTerminal*>(self);
}

wchar_t* EditTerminal::prompt_of(EditLine* edit) {
  return of(edit)->prompt_.data();
}

template <EditTerminal::Key key>
void EditTerminal::bind(const wchar_t* name, std::initializer_list<const wchar_t*> sequences) {
  ::el_wset(edit_, EL_ADDFN, name, L"footplate", &EditTerminal::bound<key>);
  for (const wchar_t* sequence : sequences) ::el_wset(edit_, EL_BIND, sequence, name, nullptr);
}

void EditTerminal::bind_keys() {
  bind<&EditTerminal::enter>(L"fp-enter", {L"\r", L"\n"});
  bind<&EditTerminal::cancel>(L"fp-cancel", {L"\x1c"});
  bind<&EditTerminal::end_of_input>(L"fp-end", {L"\x04"});
  bind<&EditTerminal::paste>(L"fp-paste", {L"\x1b[200~"});
  bind<&EditTerminal::complete>(L"fp-complete", {L"\t"});
  bind<&EditTerminal::up>(L"fp-up", {L"\x1b[A", L"\x1bOA", L"\x10"});
  bind<&EditTerminal::down>(L"fp-down", {L"\x1b[B", L"\x1bOB", L"\x0e"});
  bind<&EditTerminal::home>(L"fp-home", {L"\x1b[H", L"\x1bOH", L"\x1b[1~", L"\x01"});
  bind<&EditTerminal::end>(L"fp-row-end", {L"\x1b[F", L"\x1bOF", L"\x1b[4~", L"\x05"});
  bind<&EditTerminal::search>(L"fp-search", {L"\x12"});
  bind<&EditTerminal::erase>(L"fp-erase", {L"\x7f", L"\x08"});
  bind<&EditTerminal::right>(L"fp-right", {L"\x1b[C", L"\x1bOC", L"\x06"});
  constexpr std::array<std::array<const wchar_t*, 2>, 8> kOwn{{{L"\x1d", L"ed-newline"},
                                                               {L"\x1e", L"ed-prev-history"},
                                                               {L"\x1f", L"ed-next-history"},
                                                               {L"\x1a", L"em-inc-search-prev"},
                                                               {L"\x1b[3~", L"ed-delete-next-char"},
                                                               {L"\x1b[1;5C", L"em-next-word"},
                                                               {L"\x1b[1;5D", L"ed-prev-word"},
                                                               {L"\x17", L"ed-delete-prev-word"}}};
  for (const auto& [sequence, function] : kOwn) ::el_wset(edit_, EL_BIND, sequence, function, nullptr);
}

Terminal::Input EditTerminal::read() {
  if (ended_) return {Input::Kind::end, ""};
  if (background_.over()) return {Input::Kind::over, ""};
  cancelled_ = end_ = false;
  editing_ = true;
  int count = 0;
  const wchar_t* line = ::el_wgets(edit_, &count);
  editing_ = false;
  ::el_wset(edit_, EL_PREP_TERM, 1);
  if (cancelled_) return {Input::Kind::cancelled, ""};
  if (background_.over()) return {Input::Kind::over, ""};
  if (end_ || ended_ || line == nullptr || count <= 0) return {Input::Kind::end, ""};
  std::wstring text(line, static_cast<std::size_t>(count));  // not NUL-terminated
  while (!text.empty() && text.back() == L'\n') text.pop_back();
  return {Input::Kind::text, utf8(without_margin(text))};
}

int EditTerminal::next_key(EditLine* edit, wchar_t* key) {
  EditTerminal& self = *of(edit);
  for (;;) {
    if (self.ended_ || self.background_.over()) {
      self.hide();
      return 0;
    }
    char byte = 0;
    if (self.next_byte(byte)) {
      if (self.decode(byte, key) != 1) continue;
      self.take_hint_away();
      self.painted_.clear();
      return 1;
    }
    self.decorate();
    switch (self.next_event(/*with_keys=*/true)) {
      case Event::interrupt:
        self.block_used_ = self.block_size_;
        self.take_hint_away();
        *key = kCancelKey;
        return 1;
      case Event::keys: {
        const ssize_t got = ::read(STDIN_FILENO, self.block_.data(), self.block_.size());
        if (got < 0 && (errno == EINTR || errno == EAGAIN)) break;
        self.ended_ = got <= 0;
        self.block_used_ = 0;
        self.block_size_ = got > 0 ? static_cast<std::size_t>(got) : 0;
        break;
      }
      default:
        break;
    }
  }
}

bool EditTerminal::next_byte(char& byte) {
  if (block_used_ == block_size_) return false;
  byte = block_[block_used_++];
  if (!searching_) return true;
  const bool sequence = byte == kEscape && block_used_ < block_size_;
  if (sequence) --block_used_;  // once for the search, which it ends, and once for what it means
  constexpr std::string_view kOfSearch = "\x08\x12\x13\x16\x17";
  if (byte >= 0 && byte < 0x20 && kOfSearch.find(byte) == std::string_view::npos) searching_ = false;
  return true;
}

/// 1: a character. What isn't one in this locale is left out.
int EditTerminal::decode(char byte, wchar_t* key) {
  const std::size_t result = std::mbrtowc(key, &byte, 1, &decoding_);
  if (result == static_cast<std::size_t>(-1)) decoding_ = {};
  if (result == 0) *key = L'\0';
  return result <= 1 ? 1 : 0;
}

// --- what is on the screen ---

std::wstring EditTerminal::buffer() const {
  const LineInfoW* line = ::el_wline(edit_);
  return {line->buffer, line->lastchar};
}

std::wstring EditTerminal::before_cursor() const {
  const LineInfoW* line = ::el_wline(edit_);
  return {line->buffer, line->cursor};
}

/// Takes the prompt and what is typed from the screen; the cursor is then where the prompt began.
void EditTerminal::hide() {
  if (!editing_) return;
  hint_ = {};
  painted_.clear();
  const std::size_t row = place_after(before_cursor(), prompt_.size(), width()).row;
  const std::size_t up = std::min(row, height() - 1);  // what is higher has been scrolled away
  if (up > 0) std::fprintf(stdout, "\x1b[%zuA", up);
  std::fputs("\r\x1b[J", stdout);
}

void EditTerminal::redraw() {
  if (editing_) ::el_wset(edit_, EL_REFRESH);
  painted_.clear();
  decorate();
  std::fflush(stdout);
}

ShownInput EditTerminal::shown_input() const {
  const LineInfoW* line = ::el_wline(edit_);
  return {prompt_,
          {line->buffer, static_cast<std::size_t>(line->lastchar - line->buffer)},
          static_cast<std::size_t>(line->cursor - line->buffer),
          width(),
          height()};
}

/// What was typed before and begins so, else what the background knows.
TypingHint EditTerminal::hint_for(const std::wstring& text) {
  constexpr std::size_t kLeast = 3;  // characters, before the history is guessed from
  const std::string typed = utf8(without_margin(text));
  const auto known = typed.empty() ? std::nullopt : background_.hint(typed);
  if (known && typed.size() >= kLeast)
    for (auto entry = entries_.entries().rbegin(); entry != entries_.entries().rend(); ++entry)
      if (entry->size() > typed.size() && entry->starts_with(typed)) return {entry->substr(typed.size()), ""};
  return known.value_or(TypingHint{});
}

/// Colours, margins and the hint, over what libedit has drawn. Nothing where they are there already.
void EditTerminal::decorate() {
  if (!editing_ || searching_ || pasting_) return;
  const ShownInput input = shown_input();
  if (const std::string paints = paint(input, has_color()); paints != painted_) {
    std::fputs(paints.c_str(), stdout);
    painted_ = paints;
  }
  if (has_color() && hints_on_ && input.cursor == input.text.size()) {
    const TypingHint next = hint_for(buffer());
    if (next.rest != hint_.rest || next.note != hint_.note) {
      take_hint_away();
      hint_ = next;
      std::fputs(paint_hint(input, wide(hint_.rest + hint_.note)).c_str(), stdout);
    }
  }
  std::fflush(stdout);
}

/// Before libedit moves the cursor away from it.
void EditTerminal::take_hint_away() {
  if (hint_.rest.empty() && hint_.note.empty()) return;
  std::fputs("\x1b[K", stdout);
  hint_ = {};
}

void EditTerminal::write_lines(std::string_view text) {
  for (const char byte : text) {
    if (byte == '\n') std::fputc('\r', stdout);  // the terminal is in libedit's mode
    std::fputc(byte, stdout);
  }
}

void EditTerminal::show(std::string_view text, Kind kind) {
  if (paging_) {
    if (deferred_.size() < kMostDeferred) deferred_.emplace_back(text, kind);
    return;
  }
  hide();
  clear_live();
  write_lines(styled(text, kind));
  draw_live();
  redraw();
}

void EditTerminal::set_live(std::string_view text) {
  if (paging_ || editing_) return;
  clear_live();
  live_ = text;
  draw_live();
  std::fflush(stdout);
}

void EditTerminal::draw_live() {
  if (live_.empty()) return;
  std::string lines;
  std::size_t start = 0;
  for (live_rows_ = 0; start < live_.size() && live_rows_ + 1 < height(); ++live_rows_) {
    const std::size_t end = std::min(live_.find('\n', start), live_.size());
    lines += cut(live_.substr(start, end - start), width() - 1) + "\n";
    start = end + 1;
  }
  write_lines(styled(lines, Kind::value));
}

void EditTerminal::clear_live() {
  if (live_rows_ > 0) std::fprintf(stdout, "\x1b[%zuA\r\x1b[J", live_rows_);
  live_rows_ = 0;
}

void EditTerminal::page(std::string_view text) {
  const auto lines = static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n'));
  auto pager = lines + 2 > height() ? start_pager(in_locale(printable(text)) + "\n") : std::nullopt;
  if (!pager) return show(text, Kind::value);
  paging_ = true;
  take_keys(false);
  while (!pager->ended() && next_event(/*with_keys=*/false) != Event::ended) {
  }
  if (!pager->ended()) pager->signal(SIGTERM);
  take_keys(true);
  paging_ = false;
  for (const auto& [later, kind] : std::exchange(deferred_, {})) show(later, kind);
}

void EditTerminal::set_prompt(const std::string& prompt) {
  const std::wstring next = wide(prompt);
  if (next == prompt_) return;
  hide();
  prompt_ = next;
  redraw();
}

void EditTerminal::resized() {
  hide();  // by now the terminal has wrapped the text to its new width
  ::el_resize(edit_);
  redraw();
}

/// Keys come one by one and without an echo also while a chunk runs: what is typed ahead waits for the next
/// prompt and doesn't mix with the output.
void EditTerminal::take_keys(bool on) {
  std::fputs(on ? kPasteOn : kPasteOff, stdout);
  std::fflush(stdout);
  ::el_wset(edit_, EL_PREP_TERM, on ? 1 : 0);
}

void EditTerminal::suspend() {
  hide();
  take_keys(false);
  Terminal::suspend();
  take_keys(true);
  ::el_resize(edit_);
  redraw();
}

void EditTerminal::remember(const std::string& input) {
  HistEventW event{};
  if (entries_.add(input)) ::history_w(history_, &event, H_ENTER, with_margin(wide(input)).c_str());
}

// --- keys ---

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

/// What stands between the marks of a bracketed paste, as one piece: nothing in it is a key.
unsigned char EditTerminal::paste() {
  std::wstring text;
  pasting_ = true;
  while (!text.ends_with(kPasteEnd)) {
    wchar_t character = 0;
    const bool got = ::el_wgetc(edit_, &character) == 1 && character != kCancelKey;
    pasting_ = got;
    if (!got) return CC_EOF;
    if (text.size() < kLongestPaste + kPasteEnd.size())
      text += character;
    else if (character == kPasteEnd.back())
      break;
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

}  // namespace

CursorPlace place_after(std::wstring_view text, std::size_t prompt_columns, std::size_t width) {
  CursorPlace place{prompt_columns / width, prompt_columns % width};
  for (const wchar_t character : text) place = place_after(character, place, width);
  return place;
}

CursorPlace place_after(wchar_t character, CursorPlace place, std::size_t width) {
  // As libedit lays text out: a wide character that doesn't fit goes to the next row whole, a full row ends.
  constexpr std::size_t kTab = 8;
  std::size_t needs = static_cast<std::size_t>(columns(character));
  if (character == L'\t') needs = kTab - place.column % kTab;
  if (character == L'\n' || place.column + needs > width) place = {place.row + 1, 0};
  if (character == L'\n') return place;
  place.column += needs;
  return place.column >= width ? CursorPlace{place.row + 1, 0} : place;
}

std::unique_ptr<Terminal> make_edit_terminal(Background& background) {
  return std::make_unique<EditTerminal>(background);
}

}  // namespace footplate
