#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace footplate {

/// What can follow the text before the cursor.
struct Completions {
  struct Item {
    std::string text;  ///< replaces everything from `start` to the cursor
    std::string note;  ///< value, unit and what it is, on one line
  };
  std::size_t start = 0;  ///< bytes
  std::vector<Item> items;
};

/// What is shown dim behind the end of what is typed.
struct TypingHint {
  std::string rest;  ///< goes on where the text ends; Right and End take it
  std::string note;  ///< behind that, to be read
};

/// What goes on while a terminal waits for keys, and what it asks of the language that is typed into it.
class Background {
 public:
  virtual ~Background() = default;

  /// Readable: look() has something to do. -1: only after patience().
  virtual int descriptor() const = 0;
  virtual std::chrono::milliseconds patience() const = 0;
  virtual void look() = 0;

  /// read() and wait() return at once.
  virtual bool over() const = 0;

  /// Whether Enter ends the input, or more lines belong to it.
  virtual bool is_complete(const std::string& text) = 0;
  virtual Completions complete(const std::string& before_cursor) = 0;
  /// Asked again and again while `text` stays as it is: never waits, and may have an answer only later.
  /// Nothing: what is typed now isn't Lua, and what was typed before is no hint either.
  virtual std::optional<TypingHint> hint(const std::string& /*text*/) { return std::nullopt; }

  /// Ctrl-C where nothing is typed. True: read() returns `cancelled`.
  virtual bool nothing_to_cancel() = 0;
};

/// The way in and out of an interactive client: one region at the bottom is typed into, everything else
/// appears above it. Signals are read here: INT, WINCH, TSTP, and TERM, HUP and QUIT, which end the input.
/// One thread, one terminal per process.
class Terminal {
 public:
  struct Input {
    enum class Kind {
      text,
      cancelled,  ///< by Ctrl-C
      end,        ///< Ctrl-D, end of the stream, TERM, HUP
      over,       ///< the background said so
    };
    Kind kind = Kind::end;
    std::string text;  ///< UTF-8, without the last newline
  };
  enum class Kind {
    value,    ///< what was asked for: to stdout
    talk,     ///< everything else: to stdout on a terminal, else to stderr; green where it was applied
    event,    ///< the same, dim, or yellow where it warns
    warning,  ///< the same, yellow
    error,    ///< the same, red
  };
  enum class Woken { interrupted, something, ended };

  /// With line editing where stdin and stdout are terminals that can move the cursor; else in plain lines.
  static std::unique_ptr<Terminal> open(Background& background);
  virtual ~Terminal();
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;

  /// The next input. The background goes on meanwhile.
  virtual Input read() = 0;

  /// Prints whole lines above what is being typed.
  virtual void show(std::string_view text, Kind kind = Kind::talk) = 0;
  virtual void set_prompt(const std::string& prompt) = 0;

  /// While nothing is read: lines below all others, in place of those of the last call. Empty: none. Only on
  /// a terminal that can move its cursor.
  virtual void set_live(std::string_view /*text*/) {}
  virtual bool has_live() const { return false; }
  /// A long text, which a pager shows where there is one and it has more lines than the terminal. The
  /// background goes on meanwhile; what it shows comes after it.
  virtual void page(std::string_view text) { show(text, Kind::value); }
  virtual void show_hints(bool /*on*/) {}
  virtual void remember(const std::string& /*input*/) {}

  /// Whether a person sees what is shown.
  virtual bool is_interactive() const = 0;
  std::size_t width() const;
  std::size_t height() const;

  /// While nothing is read: until a signal, or the background had something to do. `with_keys`: or there is
  /// something on stdin, which is left there.
  Woken wait(bool with_keys = false);

 protected:
  explicit Terminal(Background& background);

  enum class Event { keys, interrupt, ended, nothing };
  /// `longest`: nothing after so long, where the background hasn't less patience.
  Event next_event(bool with_keys, std::chrono::milliseconds longest = std::chrono::milliseconds::max());
  virtual void resized() {}
  virtual void suspend();

  /// One block of text in the locale's characters, as the terminal should get it.
  std::string styled(std::string_view text, Kind kind) const;
  bool has_color() const { return color_; }

  Background& background_;
  bool ended_ = false;  ///< by a signal, or the end of stdin

 private:
  Event take_signal();

  int signals_ = -1;
  bool color_ = false;
};

}  // namespace footplate
