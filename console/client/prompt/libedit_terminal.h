#pragma once

#include <histedit.h>

#include <array>
#include <cstdio>
#include <cwchar>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "console/client/prompt/input_history.h"
#include "console/client/prompt/input_painter.h"
#include "console/client/prompt/terminal.h"

namespace footplate {

// A key of our own for one of libedit's functions that can only be reached by a key: nobody types these.
inline constexpr wchar_t kCancelKey = L'\x1c';
inline constexpr wchar_t kAcceptKey = L'\x1d';
inline constexpr wchar_t kPreviousKey = L'\x1e';
inline constexpr wchar_t kNextKey = L'\x1f';
inline constexpr wchar_t kSearchKey = L'\x1a';  // Ctrl-Z never comes as a key: it is a signal

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
  bool has_live() const override { return true; }
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
  void skip_paste();
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
  bool interrupted_ = false;  ///< Ctrl-C has come since paste() began
  bool hints_on_ = true;
  TypingHint hint_;      ///< on the screen, behind the cursor
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

}  // namespace footplate
