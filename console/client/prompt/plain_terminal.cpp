#include "console/client/prompt/plain_terminal.h"

#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "console/client/prompt/edit_terminal.h"
#include "console/client/render/text.h"

namespace footplate {
namespace {

constexpr std::size_t kLongestInput = 1 << 20;

class PlainTerminal final : public Terminal {
 public:
  explicit PlainTerminal(Background& background)
      : Terminal(background), person_(::isatty(STDIN_FILENO) == 1 && ::isatty(STDOUT_FILENO) == 1) {}

  Input read() override;
  void show(std::string_view text, Kind kind) override;
  void set_prompt(const std::string& prompt) override { prompt_ = prompt; }
  bool is_interactive() const override { return person_; }

 private:
  void write_prompt();
  bool take_line(std::string& line);
  bool fill();

  bool person_;
  bool prompting_ = false;  ///< the cursor is behind the prompt
  bool more_ = false;       ///< of an input of several lines
  bool at_end_ = false;
  std::string prompt_;
  std::string buffer_;
};

void PlainTerminal::write_prompt() {
  if (!person_) return;
  std::fputs(more_ ? "... " : in_locale(prompt_).c_str(), stdout);
  std::fflush(stdout);
  prompting_ = true;
}

bool PlainTerminal::take_line(std::string& line) {
  const auto newline = buffer_.find('\n');
  if (newline == std::string::npos && !(at_end_ && !buffer_.empty())) return false;
  line = buffer_.substr(0, newline);
  buffer_.erase(0, newline == std::string::npos ? newline : newline + 1);
  if (!line.empty() && line.back() == '\r') line.pop_back();
  return true;
}

bool PlainTerminal::fill() {
  std::array<char, 4096> block;
  const ssize_t got = ::read(STDIN_FILENO, block.data(), block.size());
  if (got < 0 && (errno == EINTR || errno == EAGAIN)) return true;
  if (got > 0) buffer_.append(block.data(), static_cast<std::size_t>(got));
  at_end_ = got <= 0;
  return got > 0;
}

Terminal::Input PlainTerminal::read() {
  std::string text;
  more_ = false;
  write_prompt();
  for (;;) {
    if (background_.over()) return {Input::Kind::over, ""};
    std::string line;
    if (take_line(line)) {
      prompting_ = false;
      text += (more_ ? "\n" : "") + line;
      more_ = true;
      const bool blank = line.find_first_not_of(" \t") == std::string::npos;
      if ((person_ && blank) || text.size() > kLongestInput || background_.is_complete(text))
        return {Input::Kind::text, text};
      write_prompt();
      continue;
    }
    if (at_end_) {
      if (more_) return {Input::Kind::text, text};
      if (prompting_) std::fputc('\n', stdout);
      prompting_ = false;
      return {Input::Kind::end, ""};
    }
    switch (next_event(/*with_keys=*/true)) {
      case Event::interrupt:
        if (!person_) return {Input::Kind::end, ""};
        prompting_ = false;
        std::fputc('\n', stdout);
        if (!more_ && buffer_.empty()) static_cast<void>(background_.nothing_to_cancel());
        return {Input::Kind::cancelled, ""};
      case Event::ended:
        return {Input::Kind::end, ""};
      case Event::keys:
        fill();
        break;
      default:
        break;
    }
  }
}

void PlainTerminal::show(std::string_view text, Kind kind) {
  const bool to_stdout = person_ || kind == Kind::value;
  std::FILE* stream = to_stdout ? stdout : stderr;
  const bool interrupts = prompting_;
  if (interrupts) std::fputc('\n', stdout);
  prompting_ = false;
  const bool raw = !person_ && ::isatty(::fileno(stream)) != 1;
  std::string shown = raw ? std::string(text) : styled(text, kind);
  if (shown.empty() || shown.back() != '\n') shown += '\n';
  std::fputs(shown.c_str(), stream);
  std::fflush(stream);
  if (interrupts) write_prompt();
}

}  // namespace

std::unique_ptr<Terminal> make_plain_terminal(Background& background) {
  return std::make_unique<PlainTerminal>(background);
}

std::unique_ptr<Terminal> Terminal::open(Background& background) {
  const char* term = std::getenv("TERM");
  const bool moves = term != nullptr && *term != '\0' && std::strcmp(term, "dumb") != 0;
  if (moves && ::isatty(STDIN_FILENO) == 1 && ::isatty(STDOUT_FILENO) == 1)
    return make_edit_terminal(background);
  return make_plain_terminal(background);
}

}  // namespace footplate
