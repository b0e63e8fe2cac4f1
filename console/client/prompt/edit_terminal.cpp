#include "console/client/prompt/edit_terminal.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>

#include "console/client/prompt/libedit_terminal.h"
#include "console/client/prompt/margin.h"
#include "console/client/prompt/pager.h"
#include "console/client/render/text.h"
#include "console/client/runs/run_index.h"

namespace footplate {
namespace {

constexpr char kEscape = '\x1b';
constexpr const char* kPasteOn = "\x1b[?2004h";
constexpr const char* kPasteOff = "\x1b[?2004l";
constexpr std::size_t kMostDeferred = 1000;  ///< blocks of text, while a pager has the terminal

}  // namespace

EditTerminal::EditTerminal(Background& background)
    : Terminal(background),
      edit_(::el_init("footplate", stdin, stdout, stderr)),
      history_(::history_winit()),
      entries_(state_folder()) {
  HistEventW event{};
  ::history_w(history_, &event, H_SETSIZE, static_cast<int>(InputHistory::kMostEntries));
  for (const auto& entry : entries_.entries())
    ::history_w(history_, &event, H_ENTER, with_margin(wide(entry)).c_str());
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
  cancelled_ = end_ = searching_ = false;
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
        self.searching_ = false;
        self.take_hint_away();
        self.interrupted_ = true;
        *key = kCancelKey;
        return 1;
      case Event::keys: {
        const ssize_t got = ::read(STDIN_FILENO, self.block_.data(), self.block_.size());
        if (got < 0 && (errno == EINTR || errno == EAGAIN)) break;
        self.ended_ = got <= 0;
        self.block_used_ = 0;
        self.block_size_ = got > 0 ? static_cast<std::size_t>(got) : 0;
        // Ctrl-C between the look and the read: what was read came behind it, and is the rest of the paste.
        if (!self.pasting_ ||
            self.next_event(/*with_keys=*/false, std::chrono::milliseconds(0)) != Event::interrupt)
          break;
        self.take_hint_away();
        self.interrupted_ = true;
        *key = kCancelKey;
        return 1;
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
  for (std::size_t rows = 0; start < live_.size() && rows + 1 < height(); ++rows) {
    const std::size_t end = std::min(live_.find('\n', start), live_.size());
    lines += cut(with_blanks(printable(live_.substr(start, end - start))), width() - 1) + "\n";
    start = end + 1;
  }
  const std::string shown = styled(lines, Kind::value);
  live_rows_ = static_cast<std::size_t>(std::ranges::count(shown, '\n'));
  write_lines(shown);
}

void EditTerminal::clear_live() {
  if (live_rows_ > 0) std::fprintf(stdout, "\x1b[%zuA\r\x1b[J", live_rows_);
  live_rows_ = 0;
}

void EditTerminal::page(std::string_view text) {
  const auto lines = static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n'));
  if (lines + 2 <= height()) return show(text, Kind::value);
  take_keys(false);  // before the pager sets the terminal's mode: after it this would take its keys away
  auto pager = start_pager(in_locale(printable(text)) + "\n");
  if (!pager) {
    take_keys(true);
    return show(text, Kind::value);
  }
  paging_ = true;
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
